"""Definitions of the counters: nothing infinite, nothing negative."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine import Origin, RoundRecord, RoundTally, RoundTotals, tokens_per_second


def record(drafted: int, accepted: int) -> RoundRecord:
    emitted = tuple("x" * (accepted + 1))
    return RoundRecord(
        ("d",) * drafted, accepted, emitted, tuple(range(accepted + 1)), 1.0, 2.0, 0.5
    )


def tallied(*rounds: tuple[int, int]) -> RoundTotals:
    tally = RoundTally()
    for drafted, accepted in rounds:
        tally.add(record(drafted, accepted))
    return tally.totals


def test_nothing_is_known_before_the_first_round() -> None:
    totals = RoundTotals()
    assert totals == RoundTally().totals
    assert totals.mean_accepted_length is None
    assert totals.acceptance is None
    assert totals.acceptance_at == []
    assert totals.per_round(totals.syncs) is None


ROUNDS = ((15, 5), (15, 0), (0, 0), (7, 7))


def test_sums_and_means() -> None:
    totals = tallied(*ROUNDS)
    assert totals.rounds == 4
    assert totals.mean_accepted_length == pytest.approx((12 + 4) / 4)
    assert totals.acceptance == pytest.approx(12 / 37)
    assert totals.accepted_per_round == (5, 0, 0, 7)
    assert totals.acceptance_at[0] == pytest.approx(2 / 3)
    assert totals.acceptance_at[6] == pytest.approx(1 / 3)
    assert totals.acceptance_at[14] == 0.0


@pytest.mark.parametrize("at", range(5))
def test_totals_of_parts_are_those_of_the_whole(at: int) -> None:
    assert tallied(*ROUNDS[:at]) + tallied(*ROUNDS[at:]) == tallied(*ROUNDS)


def test_rows_are_whose_they_are() -> None:
    """Six drafted, of which the drafter and the text both had the first two; four accepted."""
    both = replace(record(6, 4), origin=Origin.BOTH, agreed=2)
    copied, own = replace(record(5, 3), origin=Origin.LOOKUP), replace(record(4, 1), agreed=3)
    assert (both.own, both.looked_up, both.looked_up_accepted) == (2, 4, 2)
    assert replace(both, accepted=1).looked_up_accepted == 0
    tally = RoundTally()
    for one in (both, copied, own):
        tally.add(one)
    totals = tally.totals
    assert totals.drafted == 6 + 5 + 4
    assert totals.rows_from == {"drafter": 1, "lookup": 4 + 5, "both": 2 + 3}
    assert totals.looked_up_accepted == 2 + 3
    assert totals.drafted_at == (2, 2, 1, 1)  # of the drafter's own alone
    assert totals.accepted_at == (2, 1, 0, 0)


def test_what_was_told_is_not_changed_by_what_comes() -> None:
    tally = RoundTally()
    tally.add(record(3, 1))
    before = tally.totals
    tally.add(record(5, 5))
    assert before == tallied((3, 1))


def test_the_time_of_drafts_is_known_only_if_every_round_tells_it() -> None:
    tally = RoundTally()
    tally.add(record(3, 1))
    assert tally.totals.draft_ms == 1.0
    tally.add(replace(record(3, 1), draft_ms=None))
    assert tally.totals.draft_ms is None
    assert tally.totals.verify_ms == 4.0


def test_plain_steps_have_a_mean_accepted_length_of_one() -> None:
    totals = tallied((0, 0), (0, 0))
    assert totals.mean_accepted_length == 1.0
    assert totals.acceptance is None


@pytest.mark.parametrize(("tokens", "ms"), [(0, 10.0), (5, 0.0), (0, 0.0), (-1, 5.0), (5, -1.0)])
def test_a_rate_without_time_or_tokens_is_unknown(tokens: int, ms: float) -> None:
    assert tokens_per_second(tokens, ms) is None


def test_the_times_of_a_round_add_up() -> None:
    assert record(3, 1).total_ms == pytest.approx(3.5)
    assert record(3, 1).rejected == 2
