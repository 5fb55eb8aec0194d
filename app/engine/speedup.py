"""Whether, and how many times, rounds were faster than plain decoding beside them.

Decided here for every view, the command line and the bench: a ratio that cannot be so is told
nowhere, and why there is none is told in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from app.engine.plain import Plain
from app.engine.stats import RoundTotals, steady

_NOISE: Final = 0.03
"""Of two rates that are measured one after the other on a quiet machine: a gain that seems larger
than can be by no more than this is as large as can be."""


class Unmeasured(StrEnum):
    """Why no speed-up is told."""

    UNDRAFTED = "undrafted"  # plain decoding is no gain or loss over itself
    PACE = "pace"  # it changed in mid-answer: the mean does not belong to the plain rate
    NO_PLAIN = "no_plain"  # no plain steps of the same minute in such a context
    UNEVEN = "uneven"  # they took unlike times, or longer than rounds, which do more

    @property
    def words(self) -> str:
        """In brackets behind "not measured"."""
        return _WORDS[self]


_WORDS: Final = {
    Unmeasured.UNDRAFTED: "nothing was drafted",
    Unmeasured.PACE: "the machine's pace changed meanwhile",
    Unmeasured.NO_PLAIN: "no plain steps of the same minute",
    Unmeasured.UNEVEN: "plain steps were held up, as beside other programs",
}


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times as fast as plain decoding, and that one's tokens/s.

    `times` is None where it is not measured, and `why` not None. The rate is None where there is
    none, and where it cannot be right.
    """

    times: float | None = None
    plain_tokens_per_s: float | None = None
    why: Unmeasured | None = None

    @classmethod
    def of(cls, totals: RoundTotals, plain: Plain, pace: float | None = None) -> Self:
        """Of rounds beside plain steps; `pace` as `stats.Pace` tells its change."""
        if not totals.drafted:
            return cls(None, plain.tokens_per_s, Unmeasured.UNDRAFTED)
        if not steady(pace):
            return cls(None, plain.tokens_per_s, Unmeasured.PACE)
        return cls.between(totals.tokens_per_s, plain, totals.mean_accepted_length)

    @classmethod
    def between(cls, tokens_per_s: float | None, plain: Plain, length: float | None) -> Self:
        """Of a rate at which rounds gave `length` tokens each.

        A round does all that a plain step does. So it is never the quicker one, and the speed-up
        never above `length`: where it is by more than noise, other work held up the plain steps.
        """
        if not tokens_per_s or not length or not plain.tokens_per_s:
            return cls(None, plain.tokens_per_s, Unmeasured.NO_PLAIN)
        times = tokens_per_s / plain.tokens_per_s
        if plain.uneven or times > length * (1 + _NOISE):
            return cls(None, None, Unmeasured.UNEVEN)
        return cls(min(times, length), plain.tokens_per_s)
