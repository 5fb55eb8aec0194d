"""Stopping work that runs in another thread: a flag, read where stopping is safe."""

from __future__ import annotations

import threading


class JobCancelled(Exception):
    """The work was stopped because someone asked for it: silence, not an error."""


class CancelToken:
    """One job's flag. Any thread may set it; the job reads it between its steps."""

    def __init__(self) -> None:
        self._flag = threading.Event()

    def cancel(self) -> None:
        self._flag.set()

    @property
    def cancelled(self) -> bool:
        return self._flag.is_set()

    def check(self) -> None:
        """Raise `JobCancelled` if the job was asked to stop."""
        if self.cancelled:
            raise JobCancelled
