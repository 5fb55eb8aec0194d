"""How long the window holds its event loop: what a user feels as a window that does not react."""

from __future__ import annotations

import gc
import statistics
import time

from PySide6.QtCore import QObject, Qt, QTimer

from tests.ui.fakes import PacedEngine

_EVERY_MS = 5


class Gaps(QObject):
    """Milliseconds between turns of a timer that wants to run every 5: by the clock, and of work
    of this thread, which on a shared machine is the honest figure.

    What a scripted engine does in this thread is not the window's: the real one has its own.
    """

    def __init__(self, engine: PacedEngine | None = None) -> None:
        super().__init__()
        # What tests before this one left (torch among it) is no garbage of the window's: a full
        # collection over all of it takes 300 ms.
        gc.collect()
        gc.freeze()
        self.clock: list[float] = []
        self.work: list[float] = []
        self._engine = engine
        self._last = self._now()
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._turn)
        self._timer.start()

    def start(self) -> None:
        """Go on, after `stop`."""
        gc.freeze()
        self._last = self._now()
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()
        gc.unfreeze()

    def _now(self) -> tuple[float, float]:
        own = self._engine.own if self._engine else 0.0
        return time.perf_counter() - own, time.thread_time() - own

    def _turn(self) -> None:
        now = self._now()
        self.clock.append((now[0] - self._last[0]) * 1000)
        self.work.append((now[1] - self._last[1]) * 1000)
        self._last = now


_YARD_MS = 13.0
"""What `_yard` takes on the machine that the limits were set on, with nothing beside it."""


def slowdown() -> float:
    """How many times slower this thread works now than it would there; 1 where it is as fast.

    Its own time is not free of what else runs: beside it on the same core a thread takes twice
    as long for the same work.
    """
    return max(1.0, statistics.median(_yard() for _ in range(5)) / _YARD_MS)


def _yard() -> float:
    """Milliseconds of this thread for a piece of work that is always the same."""
    before = time.thread_time()
    kept: dict[int, tuple[int, str]] = {}
    text = ""
    for i in range(40_000):
        kept[i & 1023] = (i, str(i))
        text = text[-64:] + "x"
    return (time.thread_time() - before) * 1000


def percentile(gaps: list[float]) -> float:
    """The 99th."""
    return sorted(gaps)[int(len(gaps) * 0.99)]
