"""Work in another thread: how far it is, and a flag that stops it where that is safe."""

from __future__ import annotations

import threading
from collections.abc import Callable

Progress = Callable[[float], None]
"""Called with the share of the work that is done, 0 to 1."""


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
