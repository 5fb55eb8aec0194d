"""How far the work is, and whether it shall go on."""

from __future__ import annotations

from collections.abc import Callable

from app.jobs import CancelToken

OnBytes = Callable[[int, int, str], None]
"""Called with bytes written, bytes in all, and the name of the tensor at hand."""


class Watch:
    """Counts the bytes of one job, which may be several files."""

    def __init__(
        self, total: int, progress: OnBytes | None = None, cancelled: CancelToken | None = None
    ) -> None:
        self._total = total
        self._done = 0
        self._progress = progress
        self._cancelled = cancelled

    def check(self) -> None:
        """Raise `JobCancelled` if the job was asked to stop."""
        if self._cancelled:
            self._cancelled.check()

    def step(self, count: int, name: str) -> None:
        """`count` more bytes are written."""
        self._done += count
        if self._progress:
            self._progress(self._done, self._total, name)
        self.check()
