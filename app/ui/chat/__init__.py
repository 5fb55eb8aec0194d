"""One conversation on the page: messages, answers, the composer."""
