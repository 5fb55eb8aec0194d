"""What the meters show, from the engine's round records alone. No widgets here.

The rate is over rounds, prefill not included, like an answer's own; times are the
engine's, so that the window's pace never colours a figure.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine import (
    Answer,
    LoadedModel,
    RoundRecord,
    RoundTally,
    RoundTotals,
    WidthReason,
    speedup,
    tokens_per_second,
)
from app.ui.bridge import Reply

REFRESH_MS: Final = 70
"""Least time between two signals of `Meters.changed`: about 14 a second."""

STRIP: Final = 12
"""Blocks that the strip remembers."""

POINTS: Final = 64
"""Points of the sparkline."""

SMOOTH: Final = 6
"""Rounds that one point of the sparkline averages."""

SHARE_OF: Final = 3
"""Fewest rounds that an average of one position of the block is taken over."""


@dataclass(slots=True)
class Counters:
    """What was counted of one answer."""

    last: deque[RoundRecord] = field(default_factory=lambda: deque(maxlen=STRIP))
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=POINTS))
    _tally: RoundTally = field(default_factory=RoundTally)
    _recent: deque[RoundRecord] = field(default_factory=lambda: deque(maxlen=SMOOTH))

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
    def paused(self) -> bool:
        """Whether the last rounds were plain steps because nothing else paid."""
        return bool(self._recent) and all(r.reason is WidthReason.PLAIN for r in self._recent)

    @property
    def shares(self) -> list[float | None]:
        """Acceptance at each position over the rounds that drafted it; None where those are few."""
        totals = self.totals
        return [
            share if drafted >= SHARE_OF else None
            for share, drafted in zip(totals.acceptance_at, totals.drafted_at, strict=True)
        ]

    @property
    def round_ms(self) -> tuple[float | None, float, float]:
        """Mean milliseconds of a round: draft (None: timed with the verify), verify, host."""
        totals, rounds = self.totals, max(1, self.totals.rounds)
        draft = None if totals.draft_ms is None else totals.draft_ms / rounds
        return draft, totals.verify_ms / rounds, totals.host_ms / rounds


class Meters(QObject):
    """The counters of the newest answer, beside what is known of the loaded pair.

    Whatever shows them listens to `changed`, whose pace is that of the eye and not of
    the rounds.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.model: LoadedModel | None = None
        self.plain_tokens_per_s: float | None = None
        self.counters = Counters()
        self._timer = QTimer(self, interval=REFRESH_MS, singleShot=True)
        self._timer.timeout.connect(self.changed)

    @property
    def speedup(self) -> float | None:
        """None too where nothing was drafted: plain decoding is no gain or loss over itself."""
        if not self.counters.totals.drafted:
            return None
        return speedup(self.counters.tokens_per_s, self.plain_tokens_per_s)

    @property
    def block(self) -> int:
        """The drafter's block length in tokens, 0 without a drafter."""
        return self.model.block if self.model else 0

    def set_model(self, model: LoadedModel | None) -> None:
        self.model = model
        self.plain_tokens_per_s = None
        self.counters = Counters()
        self._tell()

    def set_plain(self, tokens_per_s: float) -> None:
        self.plain_tokens_per_s = tokens_per_s
        self._later()

    def set_exact(self, exact: bool) -> None:
        """What the probe found of the pair that is loaded."""
        if self.model:
            self.model = replace(self.model, exact=exact)
            self._later()

    def follow(self, reply: Reply) -> None:
        """Count a new answer. What still comes of the one before counts for that one."""
        counters = self.counters = Counters()
        reply.decoded.connect(lambda text, reasoning, rounds: self._add(counters, rounds))
        reply.finished.connect(self._end)
        reply.failed.connect(self._tell)
        self._later()

    def _add(self, counters: Counters, records: list[RoundRecord]) -> None:
        counters.add(records)
        self._later()

    def _end(self, answer: Answer) -> None:
        """What the engine knows of plain decoding now; a rate it no longer stands by goes."""
        self.plain_tokens_per_s = answer.plain_tokens_per_s
        self._tell()

    def _later(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _tell(self) -> None:
        """At once: what ends is not to be shown late."""
        self._timer.stop()
        self.changed.emit()
