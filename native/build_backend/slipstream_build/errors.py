"""The errors of the build: their text is what the user reads."""

from __future__ import annotations

UNAVAILABLE = 3  # exit status


class BuildError(Exception):
    """The build cannot go on; the message says why and what to do."""


class UnavailableError(BuildError):
    """Nothing is wrong with what is here, but it cannot be built on this machine."""
