"""How fast bytes come, and when that is too slow to be called coming."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_WINDOW: Final = 10.0  # seconds over which a rate is told


@dataclass(frozen=True, slots=True)
class Patience:
    """Fewer than `bytes` in `seconds` is a stall; after `restarts` of them in a row, we give up."""

    seconds: float = 30.0
    bytes: int = 32_768
    restarts: int = 3


USUAL: Final = Patience()


@dataclass(frozen=True, slots=True)
class Pace:
    """Where a transfer of `total` bytes is. Unknown is None; `note` is what it waits for."""

    done: int
    total: int
    rate: float | None = None  # bytes per second
    seconds_left: float | None = None
    note: str = ""


class Meter:
    """Bytes over time, of one transfer."""

    def __init__(self, patience: Patience, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience, self._clock = patience, clock
        self._seen: deque[tuple[float, int]] = deque()
        self._mark = (clock(), 0)  # since when it is watched for a stall
        self._bytes = 0  # that came while it was watched

    def add(self, count: int) -> None:
        now = self._clock()
        self._bytes += count
        self._seen.append((now, self._bytes))
        while self._seen and now - self._seen[0][0] > _WINDOW:
            self._seen.popleft()

    def forgive(self, seconds: float = 0.0) -> None:
        """No bytes are due for so long: something else is being done."""
        self._mark = (self._clock() + seconds, self._bytes)

    def stalled(self) -> bool:
        since, before = self._mark
        now = self._clock()
        if now - since < self._patience.seconds:
            return False
        self._mark = (now, self._bytes)
        return self._bytes - before < self._patience.bytes

    def pace(self, done: int, total: int, note: str = "") -> Pace:
        if len(self._seen) < 2 or (span := self._clock() - self._seen[0][0]) < 0.5:
            return Pace(done, total, note=note)
        rate = (self._seen[-1][1] - self._seen[0][1]) / span
        left = (total - done) / rate if rate > 0 else None
        return Pace(done, total, rate, left, note)
