"""Counters of speculative decoding and their definitions.

A *round* is one draft and one verify. *drafted* counts the tokens proposed,
*accepted* the proposed tokens that the target agreed with. The token that prefill
gives belongs to no round, so an answer has ``1 + accepted + rounds`` tokens.
A round that ends the answer counts its last token as the target's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class WidthReason(StrEnum):
    """Why a round verified as many tokens as it did; the order is the native library's."""

    FIXED = "fixed"  # asked for
    WHOLE = "whole"  # the whole block pays
    PAYS = "pays"  # this width gives most tokens a second
    PLAIN = "plain"  # no width pays, or none may be risked yet
    PROBE = "probe"  # none pays; a try whether that has changed


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round, as the meters and the strip of blocks show it.

    `drafted` holds the text of each proposed token, in order; the first `accepted`
    of them were kept. `emitted` is the text of each token the round added to the
    answer: the accepted ones and one of the target's own, so ``len(emitted) ==
    len(token_ids) == accepted + 1``. A plain step has an empty `drafted`.
    Times are wall-clock milliseconds. `draft_ms` is None where the device works on
    while the host prepares the verify: `verify_ms` is then the time of both.
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

    @property
    def rejected(self) -> int:
        return len(self.drafted) - self.accepted

    @property
    def total_ms(self) -> float:
        return (self.draft_ms or 0.0) + self.verify_ms + self.host_ms


@dataclass(slots=True)
class RoundTotals:
    """Sums over the rounds of one answer, or of one session."""

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
    accepted_per_round: list[int] = field(default_factory=list)
    drafted_at: list[int] = field(default_factory=list)
    accepted_at: list[int] = field(default_factory=list)

    def add(self, record: RoundRecord) -> None:
        self.rounds += 1
        self.drafted += len(record.drafted)
        self.accepted += record.accepted
        told = self.draft_ms is not None and record.draft_ms is not None
        self.draft_ms = (self.draft_ms or 0.0) + (record.draft_ms or 0.0) if told else None
        self.verify_ms += record.verify_ms
        self.host_ms += record.host_ms
        self.total_ms += record.total_ms
        self.syncs += record.syncs
        self.graphs_run += record.graphs_run
        self.graphs_rebuilt += record.graphs_rebuilt
        self.bytes_to_host += record.bytes_to_host
        self.accepted_per_round.append(record.accepted)
        while len(self.drafted_at) < len(record.drafted):
            self.drafted_at.append(0)
            self.accepted_at.append(0)
        for i in range(len(record.drafted)):
            self.drafted_at[i] += 1
            self.accepted_at[i] += i < record.accepted

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
    def acceptance_at(self) -> list[float]:
        """Share of rounds in which drafted position i was accepted, i from 0."""
        return [a / d for a, d in zip(self.accepted_at, self.drafted_at, strict=True)]


def tokens_per_second(tokens: int, milliseconds: float) -> float | None:
    """None where nothing was timed, so that no meter ever shows inf or NaN."""
    return tokens * 1000.0 / milliseconds if tokens > 0 and milliseconds > 0 else None


def speedup(tokens_per_s: float | None, plain_tokens_per_s: float | None) -> float | None:
    """Measured rate over measured plain rate; None until both were measured."""
    if not tokens_per_s or not plain_tokens_per_s:
        return None
    return tokens_per_s / plain_tokens_per_s


def median(values: Sequence[float]) -> float | None:
    ordered = sorted(values)
    n = len(ordered)
    if not n:
        return None
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
