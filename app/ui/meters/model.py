"""What the meters show, from the engine's round records alone. No widgets here.

The rate is over rounds, prefill not included, like an answer's own; times are the
engine's, so that the window's pace never colours a figure.
"""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine import (
    FRESH,
    Answer,
    Figures,
    LoadedModel,
    Pace,
    Plain,
    Rest,
    RoundRecord,
    RoundTally,
    RoundTotals,
    Speedup,
    alike,
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

EVEN: Final = 0.05
"""A speed-up this near to 1 is no difference."""

STEPS: Final = 32
"""Plain steps that are remembered."""


@dataclass(slots=True)
class Counters:
    """What was counted of one answer; or what is `kept` of one that was not followed."""

    kept: Figures | None = None
    context: int = 0  # tokens of the prompt and of the answer so far
    reading: bool = False  # the prompt is read, no round has come yet
    ended: bool = False
    plain_at_end: Plain = field(default_factory=Plain)  # what the engine stands by
    last: deque[RoundRecord] = field(default_factory=lambda: deque(maxlen=STRIP))
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=POINTS))
    lengths: deque[float] = field(default_factory=lambda: deque(maxlen=POINTS))  # mean accepted
    _tally: RoundTally = field(default_factory=RoundTally)
    _pace: Pace = field(default_factory=Pace)
    _rest: Rest = field(default_factory=Rest)
    _steps: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=STEPS))
    _was_plain: bool = False
    _clock: float = 0.0  # milliseconds of all rounds
    _recent: deque[RoundRecord] = field(default_factory=lambda: deque(maxlen=SMOOTH))
    _tokens: deque[int] = field(default_factory=lambda: deque(maxlen=SMOOTH))  # of the same
    _spent: deque[float] = field(default_factory=lambda: deque(maxlen=SMOOTH))

    def add(self, records: list[RoundRecord]) -> None:
        self.reading = self.reading and not records
        for left, record in zip(range(len(records), 0, -1), records, strict=True):
            self._tally.add(record)
            self._pace.add(record)
            self._rest.add(record)
            spent = record.total_ms
            self.context += len(record.token_ids)
            self._clock += spent
            if not record.drafted and self._was_plain:  # as the engine counts them
                self._steps.append((self._clock, spent))
            self._was_plain = not record.drafted
            if left > POINTS + SMOOTH:
                continue  # those that come with it push it out of all that follows
            self.last.append(record)
            self._recent.append(record)
            self._tokens.append(len(record.emitted))
            self._spent.append(spent)
            rate = tokens_per_second(sum(self._tokens), sum(self._spent))
            if rate is not None:
                self.rates.append(rate)
                self.lengths.append(sum(self._tokens) / len(self._tokens))

    @property
    def over(self) -> bool:
        """Whether no more is to come."""
        return self.ended or self.kept is not None

    @property
    def totals(self) -> RoundTotals:
        return self.kept.totals if self.kept else self._tally.totals

    @property
    def pace(self) -> float | None:
        return self.kept.pace if self.kept else self._pace.change

    @property
    def tokens_per_s(self) -> float | None:
        return self.totals.tokens_per_s

    @property
    def plain(self) -> Plain:
        """By the plain steps among the rounds of the last minute."""
        return Plain.of(ms / 1000 for at, ms in self._steps if self._clock - at < FRESH * 1000)

    @property
    def paused(self) -> bool:
        """Whether the last rounds were plain steps because nothing else paid. Where that was not
        kept it is known only if no round drafted."""
        if self.kept:
            return self.kept.rests or (self.kept.paused and not self.kept.totals.drafted)
        return self._rest.now

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
    """The counters of the answer on view, beside what is known of the loaded pair.

    Whatever shows them listens to `changed`, whose pace is that of the eye and not of
    the rounds.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.model: LoadedModel | None = None
        self._plain = Plain()
        self._plain_at = -math.inf  # when that was measured, by the monotonic clock
        self._plain_context = 0  # and with how many tokens in the context
        self.counters = Counters()
        self._live = Counters()  # of the answer that is followed, on view or not
        self._followed = self._on_view = ""  # ids of turns
        self._timer = QTimer(self, interval=REFRESH_MS, singleShot=True)
        self._timer.timeout.connect(self.changed)

    @property
    def speedup(self) -> Speedup:
        return Speedup.of(self.counters.totals, self._beside, self.counters.pace)

    @property
    def paused(self) -> bool:
        """Whether drafting rests because it did not pay: now, or at the end of an answer for which
        no gain was measured. One that gained as a whole is told by that."""
        gain = self.speedup.times if self.counters.over else None
        return self.counters.paused and (gain is None or gain <= 1 + EVEN)

    @property
    def plain(self) -> float | None:
        """The plain rate that belongs to the answer on view, tokens/s."""
        return self.speedup.plain_tokens_per_s

    @property
    def _beside(self) -> Plain:
        """Of an answer that ended, what the engine stood by then. Of one that comes, its own plain
        steps of the last minute, or what was measured in the last minute before, in such a context.
        """
        counters = self.counters
        if counters.kept:
            return counters.kept.plain
        if counters.ended:
            return counters.plain_at_end
        fresh = time.monotonic() - self._plain_at < FRESH
        known = fresh and alike(self._plain_context, counters.context)
        own = counters.plain
        return self._plain if own.tokens_per_s is None and known else own

    @property
    def plain_tokens_per_s(self) -> float | None:
        """The plain rate that was measured last, however long ago."""
        return self._plain.tokens_per_s

    def _know(self, plain: Plain, context: int) -> None:
        self._plain, self._plain_at, self._plain_context = plain, time.monotonic(), context

    @property
    def block(self) -> int:
        """The drafter's block length in tokens, 0 without a drafter."""
        return self.model.block if self.model else 0

    def set_model(self, model: LoadedModel | None) -> None:
        self.model = model
        self._know(Plain(), 0)
        if self.counters.kept is None:  # what is as it was stays so
            self.counters = Counters()
        self._live, self._followed = Counters(), ""
        self._tell()

    def set_plain(self, plain: Plain) -> None:
        """What was measured just now, with next to nothing in the context."""
        self._know(plain, 0)
        self._later()

    def set_exact(self, exact: bool) -> None:
        """What the probe found of the pair that is loaded."""
        if self.model:
            self.model = replace(self.model, exact=exact)
            self._later()

    def show(self, turn: str, figures: Figures | None) -> None:
        """The answer on view: live where it is followed, else as it was."""
        if turn == self._on_view and turn == self._followed:
            return
        self._on_view = turn
        if turn == self._followed:
            self.counters = self._live
        elif self.counters.kept is not figures or figures is None:
            self.counters = Counters(kept=figures)
        self._tell()

    def follow(self, reply: Reply, turn: str = "") -> None:
        """Count a new answer. What still comes of the one before counts for that one."""
        counters = self._live = Counters(reading=True)
        self._followed = turn
        if turn == self._on_view:
            self.counters = counters
        reply.prefilled.connect(lambda event: self._begin(counters, event.prompt_tokens))
        reply.decoded.connect(lambda text, reasoning, rounds: self._add(counters, rounds))
        reply.finished.connect(lambda answer: self._end(counters, answer))
        reply.failed.connect(lambda _: self._stop(counters, counters.plain))
        self._later()

    def _begin(self, counters: Counters, prompt: int) -> None:
        counters.context = prompt

    def _add(self, counters: Counters, records: list[RoundRecord]) -> None:
        counters.add(records)
        self._later()

    def _end(self, counters: Counters, answer: Answer) -> None:
        """What the engine knows of plain decoding now; a rate it no longer stands by goes."""
        self._know(answer.plain, answer.prompt_tokens + answer.completion_tokens)
        self._stop(counters, answer.plain)

    def _stop(self, counters: Counters, plain: Plain) -> None:
        counters.reading, counters.ended, counters.plain_at_end = False, True, plain
        self._tell()

    def _later(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _tell(self) -> None:
        """At once: what ends is not to be shown late."""
        self._timer.stop()
        self.changed.emit()
