"""Counters of speculative decoding and their definitions.

A *round* is one draft and one verify. *drafted* counts the tokens proposed,
*accepted* the proposed tokens that the target agreed with. The token that prefill
gives belongs to no round, so an answer has ``1 + accepted + rounds`` tokens; where its
thinking was ended, what ended it and the token behind that belong to none either.
A round that ends the answer counts its last token as the target's own.

A draft comes from the drafter, or was looked up in the text so far (`lookup`), or begins as
both have it and goes on as the text did. What the drafter is worth, position by position, is
counted over its own tokens alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import zip_longest
from operator import add, attrgetter
from typing import Any, Final

from app.binding import WidthReason


class Origin(StrEnum):
    """Where the draft of a round came from."""

    DRAFTER = "drafter"
    LOOKUP = "lookup"  # the text so far; see `lookup`
    BOTH = "both"  # the first `RoundRecord.agreed` tokens; those behind them the text so far


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round, as the meters and the strip of blocks show it.

    `drafted` holds the text of each proposed token, in order; the first `accepted`
    of them were kept. `emitted` is the text of each token the round added to the
    answer: the accepted ones and one of the target's own, so ``len(emitted) ==
    len(token_ids) == accepted + 1``. A plain step has an empty `drafted`.
    Times are wall-clock milliseconds. `draft_ms` is None where the device works on
    while the host prepares the verify: `verify_ms` is then the time of both. `agreed` of a
    drafter's tokens, the first ones, a lookup drafted or would have drafted too.
    """

    drafted: tuple[str, ...]
    accepted: int
    emitted: tuple[str, ...]
    token_ids: tuple[int, ...]
    draft_ms: float | None
    verify_ms: float
    host_ms: float
    reason: WidthReason = WidthReason.FIXED
    syncs: int = 0  # times the host waited for the device
    graphs_run: int = 0
    graphs_rebuilt: int = 0
    bytes_to_host: int = 0
    origin: Origin = Origin.DRAFTER
    agreed: int = 0

    @property
    def own(self) -> int:
        """Drafted tokens that are the drafter's, the first ones."""
        if self.origin is Origin.LOOKUP:
            return 0
        return self.agreed if self.origin is Origin.BOTH else len(self.drafted)

    @property
    def looked_up(self) -> int:
        """Drafted tokens that came from the text so far."""
        return len(self.drafted) - self.own

    @property
    def looked_up_accepted(self) -> int:
        return max(0, self.accepted - self.own)

    @property
    def rejected(self) -> int:
        return len(self.drafted) - self.accepted

    @property
    def total_ms(self) -> float:
        return (self.draft_ms or 0.0) + self.verify_ms + self.host_ms


@dataclass(frozen=True, slots=True)
class RoundTotals:
    """Sums over the rounds of one answer, or of several (`+`)."""

    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    draft_ms: float | None = 0.0  # None once a round did not tell it apart
    verify_ms: float = 0.0
    host_ms: float = 0.0
    total_ms: float = 0.0
    syncs: int = 0
    graphs_run: int = 0
    graphs_rebuilt: int = 0
    bytes_to_host: int = 0
    looked_up: int = 0  # of `drafted`, those out of the text so far
    looked_up_accepted: int = 0
    agreed: int = 0  # of the drafter's, those that a lookup drafted or would have drafted too
    accepted_per_round: tuple[int, ...] = ()
    drafted_at: tuple[int, ...] = ()  # rounds whose drafter drafted position i
    accepted_at: tuple[int, ...] = ()  # ... and had it accepted

    def __add__(self, other: RoundTotals) -> RoundTotals:
        sums = {
            f.name: getattr(self, f.name) + getattr(other, f.name)
            for f in fields(self)
            if f.name not in ("draft_ms", "drafted_at", "accepted_at")
        }
        apart = self.draft_ms is not None and other.draft_ms is not None
        return RoundTotals(
            **sums,
            draft_ms=(self.draft_ms or 0.0) + (other.draft_ms or 0.0) if apart else None,
            drafted_at=_sum_at(self.drafted_at, other.drafted_at),
            accepted_at=_sum_at(self.accepted_at, other.accepted_at),
        )

    @property
    def mean_accepted_length(self) -> float | None:
        """(accepted + rounds) / rounds; plain decoding is 1; None before a round."""
        return (self.accepted + self.rounds) / self.rounds if self.rounds else None

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens of the rounds over their time, prefill not included; None before a round."""
        return tokens_per_second(self.accepted + self.rounds, self.total_ms)

    def per_round(self, total: float) -> float | None:
        return total / self.rounds if self.rounds else None

    @property
    def acceptance(self) -> float | None:
        """accepted / drafted; None before anything was drafted."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def rows_from(self) -> dict[str, int]:
        """Drafted tokens by where they came from; "both": the drafter's, where a lookup drafted
        or would have drafted the same."""
        drafter = self.drafted - self.looked_up - self.agreed
        return {"drafter": drafter, "lookup": self.looked_up, "both": self.agreed}

    @property
    def acceptance_at(self) -> list[float]:
        """Share of the drafter's rounds in which its position i was accepted, i from 0."""
        return [a / d for a, d in zip(self.accepted_at, self.drafted_at, strict=True)]


_SUMMED: Final = (
    "accepted", "verify_ms", "host_ms", "total_ms", "syncs", "graphs_run", "graphs_rebuilt",
    "bytes_to_host", "looked_up", "looked_up_accepted", "agreed",
)  # fmt: skip
"""What of a record is summed as it is, under the same name."""

_summed: Final = attrgetter(*_SUMMED)


class RoundTally:
    """Counts rounds as they come, hundreds a second. `totals` is what has been counted so far."""

    def __init__(self) -> None:
        self._rounds = 0
        self._draft_ms: float | None = 0.0
        self._sums: list[Any] = [getattr(RoundTotals(), name) for name in _SUMMED]
        self._accepted_per_round: list[int] = []
        self._alike: Counter[tuple[int, int]] = (
            Counter()
        )  # the drafter's rounds by what they drafted and kept
        self._totals: RoundTotals | None = None  # made when asked for, kept until the next round

    def add(self, record: RoundRecord) -> None:
        self._totals = None
        self._rounds += 1
        apart = self._draft_ms is not None and record.draft_ms is not None
        self._draft_ms = (self._draft_ms or 0.0) + (record.draft_ms or 0.0) if apart else None
        self._sums = list(map(add, self._sums, _summed(record)))
        self._accepted_per_round.append(record.accepted)
        if record.origin is not Origin.LOOKUP:
            self._alike[record.own, min(record.accepted, record.own)] += 1

    @property
    def totals(self) -> RoundTotals:
        if self._totals is None:
            drafted_at, accepted_at = self._at
            sums = dict(zip(_SUMMED, self._sums, strict=True))
            self._totals = RoundTotals(
                rounds=self._rounds,
                drafted=sum(drafted_at) + sums["looked_up"],
                draft_ms=self._draft_ms,
                **sums,
                accepted_per_round=tuple(self._accepted_per_round),
                drafted_at=tuple(drafted_at),
                accepted_at=tuple(accepted_at),
            )
        return self._totals

    @property
    def _at(self) -> tuple[list[int], list[int]]:
        """Rounds that drafted each position, and that had it accepted."""
        widest = max((drafted for drafted, _ in self._alike), default=0)
        drafted_at, accepted_at = [0] * widest, [0] * widest
        for (drafted, accepted), rounds in self._alike.items():
            for i in range(drafted):
                drafted_at[i] += rounds
                accepted_at[i] += rounds if i < accepted else 0
        return drafted_at, accepted_at


STEADY: Final = 1.5
"""Factor up to which the pace of rounds may change within an answer, for its mean to say much."""


_Kind = tuple[Origin, int]


class Pace:
    """Whether rounds take as long throughout an answer as they did at its beginning.

    Rounds of one kind are compared, the one that most rounds are: their width changes what they
    cost, and whether a drafter ran. On a machine that is busy for a part of an answer, or with a
    context that grows long, an answer's mean rate is no measure beside a plain rate of its last
    minute.
    """

    _ENOUGH: Final = 16  # rounds at the beginning, and at most at the end
    _FEWEST: Final = 4  # rounds that one can stand out of

    def __init__(self) -> None:
        self._first: defaultdict[_Kind, list[float]] = defaultdict(list)
        self._last: defaultdict[_Kind, deque[float]] = defaultdict(
            lambda: deque(maxlen=self._ENOUGH)
        )
        self._rounds: Counter[_Kind] = Counter()
        self._spent: defaultdict[_Kind, float] = defaultdict(float)  # milliseconds

    def add(self, record: RoundRecord) -> None:
        kind = record.origin, len(record.drafted)
        self._rounds[kind] += 1
        self._spent[kind] += record.total_ms
        enough = len(self._first[kind]) >= self._ENOUGH
        (self._last if enough else self._first)[kind].append(record.total_ms)

    @property
    def change(self) -> float | None:
        """Time of a round over that of one at the beginning: at the end, or of all of them, which
        is what a mean rate is made of; the one that is further from 1.

        Where rounds were few: 0 if some took so much longer than the others that their mean says
        nothing, else None.
        """
        from statistics import median  # here: no start needs it

        for kind, rounds in self._rounds.most_common():
            first, last = self._first[kind], self._last[kind]
            if len(last) >= self._ENOUGH // 2 and (before := median(first)) > 0:
                changes = median(last) / before, self._spent[kind] / rounds / before
                return max(changes, key=lambda change: max(change, 1 / change) if change else 0)
        for kind, rounds in self._rounds.most_common(1):
            usual = median(self._first[kind])
            if rounds >= self._FEWEST and self._spent[kind] > STEADY * rounds * usual:
                return 0.0
        return None


class Rest:
    """Whether drafting rests because it does not pay: `ever`, and as of the last round, `now`."""

    _LAST: Final = 6  # rounds, that all were plain steps because nothing else paid

    def __init__(self) -> None:
        self.ever = False
        self._rounds = self._in_row = 0

    def add(self, record: RoundRecord) -> None:
        plain = record.reason is WidthReason.PLAIN
        self.ever |= plain
        self._rounds += 1
        self._in_row = self._in_row + 1 if plain else 0

    @property
    def now(self) -> bool:
        return 0 < min(self._rounds, self._LAST) <= self._in_row


def steady(change: float | None) -> bool:
    """Whether a pace that changed by this factor still has a mean that says something."""
    return change is None or 1 / STEADY < change < STEADY


def tokens_per_second(tokens: int, milliseconds: float) -> float | None:
    """None where nothing was timed, so that no meter ever shows inf or NaN."""
    return tokens * 1000.0 / milliseconds if tokens > 0 and milliseconds > 0 else None


def _sum_at(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip_longest(one, other, fillvalue=0))
