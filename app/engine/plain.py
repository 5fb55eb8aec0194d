"""What plain decoding takes, from plain steps of the last minute: the measure of a speed-up.

A rate from another hour or another context says as much about the machine's load and the prompt's
length as about drafting. So a speed-up is told only where plain steps stand beside it; otherwise it
is not measured.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

FRESH: Final = 60.0
"""Seconds for which a plain step, or a rate of them, tells how fast the machine is."""

_STEPS: Final = 2  # at least; the governor takes them in pairs
_KEPT: Final = 64
_CONTEXT: Final = (512, 1.25)  # tokens or factor by which contexts may differ


@dataclass(slots=True)
class PlainSpeed:
    """Plain steps of one loaded pair as (when, context in tokens, seconds)."""

    now: Callable[[], float] = time.monotonic
    _steps: deque[tuple[float, int, float]] = field(
        default_factory=lambda: deque(maxlen=_KEPT), init=False
    )

    def add(self, context: int, seconds: float) -> None:
        """A plain step behind another one: the first after a draft builds its graph."""
        self._steps.append((self.now(), context, seconds))

    def rate(self, context: int) -> float | None:
        """Tokens/s at about `context` tokens; None where that was not measured lately."""
        from statistics import median  # here: no start needs it

        since = self.now() - FRESH
        near = [s for when, at, s in self._steps if when >= since and alike(at, context)]
        return 1.0 / median(near) if len(near) >= _STEPS and all(near) else None


def alike(one: int, other: int) -> bool:
    """Whether a plain step takes about as long at one context as at the other, in tokens."""
    low, high = sorted((one, other))
    return high - low <= _CONTEXT[0] or high <= low * _CONTEXT[1]
