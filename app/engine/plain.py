"""What plain decoding takes, from plain steps of the last minute: the measure of a speed-up.

A rate from another hour or another context says as much about the machine's load and the prompt's
length as about drafting. So a speed-up is told only where plain steps stand beside it; otherwise it
is not measured.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from app.engine.stats import STEADY

FRESH: Final = 60.0
"""Seconds for which a plain step, or a rate of them, tells how fast the machine is."""

_STEPS: Final = 2  # at least; the governor takes them in pairs
_KEPT: Final = 64
_CONTEXT: Final = (512, 1.25)  # tokens or factor by which contexts may differ


class Plain(NamedTuple):
    """What plain decoding does: tokens/s, None where it was not measured.

    `uneven`: its steps took so unlike times that the rate is no measure for another one.
    """

    tokens_per_s: float | None = None
    uneven: bool = False

    @classmethod
    def of(cls, steps: Iterable[float]) -> Plain:
        """By steps in seconds, of one minute and at about one context.

        The one in the middle counts. Measured beside other work with the demo pair, 143 answers,
        each between two plain ones: the speed-up was so 0.53 to 1.04 of theirs (5 to 95 %), by
        the mean step 0.67 to 1.52. Beside two busy programs and more on two cores 0.26 to 4.2,
        and up to 4.8: then half of the steps lie further apart than `STEADY`.
        """
        ordered = sorted(steps)
        if len(ordered) < _STEPS or not ordered[0] > 0:
            return cls()
        from statistics import median  # here: no start needs it

        quarter = len(ordered) // 4
        uneven = ordered[-1 - quarter] > STEADY * ordered[quarter]
        return cls(1.0 / median(ordered), uneven)


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

    def at(self, context: int) -> Plain:
        """At about `context` tokens; without a rate where that was not measured lately."""
        since = self.now() - FRESH
        return Plain.of(s for when, at, s in self._steps if when >= since and alike(at, context))


def alike(one: int, other: int) -> bool:
    """Whether a plain step takes about as long at one context as at the other, in tokens."""
    low, high = sorted((one, other))
    return high - low <= _CONTEXT[0] or high <= low * _CONTEXT[1]
