"""The window itself: what it holds, how it is laid out and wired."""
