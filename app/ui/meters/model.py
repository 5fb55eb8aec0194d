"""What the meters show, from the engine's round records alone. No widgets here.

The rate is over rounds, prefill not included, like `RoundTotals.tokens_per_s`; times are the
engine's own, so that the window's pace never colours a figure.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from app.engine import RoundRecord, RoundTally, RoundTotals, speedup, tokens_per_second

STRIP: Final = 12
"""Blocks that the strip remembers."""

POINTS: Final = 64
"""Points of the sparkline."""

SMOOTH: Final = 6
"""Rounds that one point of the sparkline averages."""


@dataclass(slots=True)
class MeterModel:
    """One answer's counters; `plain_tokens_per_s` and `block` belong to the loaded pair."""

    plain_tokens_per_s: float | None = None
    block: int = 0
    last: deque[RoundRecord] = field(default_factory=lambda: deque(maxlen=STRIP))
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=POINTS))
    _tally: RoundTally = field(default_factory=RoundTally)
    _recent: deque[RoundRecord] = field(default_factory=lambda: deque(maxlen=SMOOTH))

    def begin(self) -> None:
        """A new answer: its counters start at nothing, the strip empties."""
        self._tally = RoundTally()
        self.last.clear()
        self.rates.clear()
        self._recent.clear()

    def add(self, records: list[RoundRecord]) -> None:
        for record in records:
            self._tally.add(record)
            self.last.append(record)
            self._recent.append(record)
            tokens = sum(len(r.emitted) for r in self._recent)
            rate = tokens_per_second(tokens, sum(r.total_ms for r in self._recent))
            if rate is not None:
                self.rates.append(rate)

    @property
    def totals(self) -> RoundTotals:
        return self._tally.totals

    @property
    def tokens_per_s(self) -> float | None:
        return self.totals.tokens_per_s

    @property
    def speedup(self) -> float | None:
        return speedup(self.tokens_per_s, self.plain_tokens_per_s)

    @property
    def round_ms(self) -> tuple[float | None, float, float]:
        """Mean milliseconds of a round: draft (None: timed with the verify), verify, host."""
        totals, rounds = self.totals, max(1, self.totals.rounds)
        draft = None if totals.draft_ms is None else totals.draft_ms / rounds
        return draft, totals.verify_ms / rounds, totals.host_ms / rounds
