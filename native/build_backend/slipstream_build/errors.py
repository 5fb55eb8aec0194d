"""The one error of the build: its text is what the user reads."""

from __future__ import annotations


class BuildError(Exception):
    """The build cannot go on; the message says why and what to do."""
