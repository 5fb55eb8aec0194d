"""Definitions of the counters (C33: nothing infinite, nothing negative)."""

from __future__ import annotations

import pytest

from app.engine import RoundRecord, RoundTotals, speedup, tokens_per_second
from app.engine.stats import median


def record(drafted: int, accepted: int) -> RoundRecord:
    emitted = tuple("x" * (accepted + 1))
    return RoundRecord(
        ("d",) * drafted, accepted, emitted, tuple(range(accepted + 1)), 1.0, 2.0, 0.5
    )


def test_nothing_is_known_before_the_first_round() -> None:
    totals = RoundTotals()
    assert totals.mean_accepted_length is None
    assert totals.acceptance is None
    assert totals.acceptance_at == []


def test_sums_and_means() -> None:
    totals = RoundTotals()
    for drafted, accepted in ((15, 5), (15, 0), (0, 0), (7, 7)):
        totals.add(record(drafted, accepted))
    assert totals.rounds == 4
    assert totals.mean_accepted_length == pytest.approx((12 + 4) / 4)
    assert totals.acceptance == pytest.approx(12 / 37)
    assert totals.accepted_per_round == [5, 0, 0, 7]
    assert totals.acceptance_at[0] == pytest.approx(2 / 3)
    assert totals.acceptance_at[6] == pytest.approx(1 / 3)
    assert totals.acceptance_at[14] == 0.0


def test_plain_steps_have_a_mean_accepted_length_of_one() -> None:
    totals = RoundTotals()
    totals.add(record(0, 0))
    totals.add(record(0, 0))
    assert totals.mean_accepted_length == 1.0
    assert totals.acceptance is None


@pytest.mark.parametrize(("tokens", "ms"), [(0, 10.0), (5, 0.0), (0, 0.0), (-1, 5.0), (5, -1.0)])
def test_a_rate_without_time_or_tokens_is_unknown(tokens: int, ms: float) -> None:
    assert tokens_per_second(tokens, ms) is None


def test_speedup_needs_both_rates() -> None:
    assert speedup(None, 10.0) is None
    assert speedup(10.0, None) is None
    assert speedup(10.0, 0.0) is None
    assert speedup(5.0, 10.0) == 0.5


def test_median() -> None:
    assert median([]) is None
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([4.0, 1.0]) == 2.5


def test_the_times_of_a_round_add_up() -> None:
    assert record(3, 1).total_ms == pytest.approx(3.5)
    assert record(3, 1).rejected == 2
