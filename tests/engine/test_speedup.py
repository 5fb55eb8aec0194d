"""Where a speed-up is told, and where it is not: never one that cannot be so."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine import (
    Figures,
    FinishReason,
    Pace,
    Plain,
    RoundTally,
    RoundTotals,
    Speedup,
    Unmeasured,
)
from app.engine.plain import PlainSpeed

from .test_stats import record

PLAIN = Plain(50.0)


def totals(*accepted: int, ms: float = 30.0, drafted: int = 7) -> RoundTotals:
    tally = RoundTally()
    for n in accepted:
        part = ms / 4
        tally.add(replace(record(drafted, n), draft_ms=part, verify_ms=2 * part, host_ms=part))
    return tally.totals


def test_it_is_the_rate_over_the_plain_one() -> None:
    told = Speedup.of(totals(2, 4), PLAIN)  # 8 tokens in 60 ms
    assert told.times == pytest.approx(8 / 0.060 / 50)
    assert (told.plain_tokens_per_s, told.why) == (50.0, None)


@pytest.mark.parametrize(
    ("rounds", "plain", "pace", "why"),
    [
        (totals(), PLAIN, None, Unmeasured.UNDRAFTED),
        (totals(0, 0, drafted=0), PLAIN, None, Unmeasured.UNDRAFTED),
        (totals(2, 4), Plain(), None, Unmeasured.NO_PLAIN),
        (totals(2, 4, ms=0.0), PLAIN, None, Unmeasured.NO_PLAIN),
        (totals(2, 4), PLAIN, 2.0, Unmeasured.PACE),
        (totals(2, 4), PLAIN, 0.0, Unmeasured.PACE),
        (totals(2, 4), Plain(50.0, uneven=True), None, Unmeasured.UNEVEN),
        (totals(2, 4, ms=19.0), PLAIN, None, Unmeasured.UNEVEN),  # a plain step takes 20 ms
    ],
)
def test_why_there_is_none(
    rounds: RoundTotals, plain: Plain, pace: float | None, why: Unmeasured
) -> None:
    told = Speedup.of(rounds, plain, pace)
    assert (told.times, told.why) == (None, why)
    assert why.words


def test_a_rate_that_cannot_be_so_is_not_told_either() -> None:
    assert Speedup.of(totals(2, 4, ms=19.0), PLAIN).plain_tokens_per_s is None


def test_a_round_may_cost_as_much_as_a_plain_step() -> None:
    for ms in (20.0, 19.8, 19.5):  # noise is no other program
        assert Speedup.of(totals(2, 4, 4, ms=ms), PLAIN).times == pytest.approx(13 / 3)


@given(
    st.lists(st.integers(0, 15), min_size=1, max_size=40),
    st.floats(0.01, 1e4),
    st.floats(0.01, 1e5),
)
def test_it_is_never_above_the_mean_accepted_length(
    accepted: list[int], ms: float, rate: float
) -> None:
    rounds = totals(*accepted, ms=ms, drafted=15)
    told = Speedup.of(rounds, Plain(rate))
    assert rounds.mean_accepted_length is not None
    assert told.times is None or told.times <= rounds.mean_accepted_length
    assert (told.times is None) is (told.why is not None)


# --- an answer that was gone on with ------------------------------------------------------

PART = Figures(
    finish_reason=FinishReason.STOP,
    completion_tokens=8,
    prompt_tokens=5,
    reused=0,
    prefill_ms=1.0,
    totals=totals(2, 4),
    plain_tokens_per_s=50.0,
    backend="cpu",
    device="A CPU",
    seed=None,
)


def test_each_part_is_measured_by_the_plain_steps_of_its_own_time() -> None:
    slow = replace(PART, totals=totals(2, 4, ms=120.0), plain_tokens_per_s=12.5)
    assert PART.then(slow).speedup.times == pytest.approx(PART.speedup.times)
    assert slow.then(PART).speedup.times == pytest.approx(PART.speedup.times)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"plain_tokens_per_s": None}, Unmeasured.NO_PLAIN),
        ({"plain_uneven": True}, Unmeasured.UNEVEN),
        ({"pace": 3.0}, Unmeasured.PACE),
    ],
)
def test_what_one_part_lacks_the_whole_does(changes: dict[str, float], why: Unmeasured) -> None:
    lacking = replace(PART, **changes)  # type: ignore[arg-type]
    assert lacking.then(PART).speedup.why is why
    assert PART.then(lacking).speedup.why is why


def test_a_part_without_rounds_has_no_say() -> None:
    nothing = replace(PART, totals=RoundTotals(), plain_tokens_per_s=None)
    assert nothing.then(PART).speedup == PART.speedup
    assert PART.then(nothing).speedup == PART.speedup


# --- a machine that other programs hold up now and then -----------------------------------

STEP, ROUND = 8.0, 12.0  # milliseconds, where nothing does


def held_up(chance: random.Random, slow: float, free: float, busy: float) -> tuple[float, Speedup]:
    """An answer while the machine is free and busy for so many milliseconds on average, which
    makes it `slow` times as slow; what drafting gains in it, and what is told of that."""
    now, tokens, was_plain, work = 0.0, 100, False, 0.0
    plain, pace, tally = PlainSpeed(lambda: now / 1000), Pace(), RoundTally()
    is_busy = chance.random() < busy / (free + busy)
    left = chance.expovariate(1 / (busy if is_busy else free))
    for i in range(chance.choice((25, 100, 400))):
        is_plain = i % 18 in (0, 1)
        need, began = STEP if is_plain else ROUND, now
        work += need
        while need > 0:
            part = min(left, need * slow if is_busy else need)
            now, left = now + part, left - part
            need -= part / slow if is_busy else part
            if left <= 0:
                is_busy = not is_busy
                left = chance.expovariate(1 / (busy if is_busy else free))
        if is_plain and was_plain:
            plain.add(tokens, (now - began) / 1000)
        was_plain = is_plain
        accepted = 0 if is_plain else chance.randint(0, 8)
        made = replace(
            record(0 if is_plain else 15, accepted), draft_ms=None, verify_ms=now - began, host_ms=0
        )
        tally.add(made)
        pace.add(made)
        tokens += accepted + 1
    return (tokens - 100) * STEP / work, Speedup.of(tally.totals, plain.at(tokens), pace.change)


@pytest.mark.parametrize("slow", [1.5, 2.5, 5.0])
@pytest.mark.parametrize(("free", "busy"), [(2, 2), (20, 10), (100, 100), (1_000, 500)])
def test_no_gain_is_made_of_a_busy_machine(slow: float, free: float, busy: float) -> None:
    """Where one is told it is what drafting gains, or less of it, but for the spread of times."""
    chance = random.Random(f"{slow} {free} {busy}")
    pairs = [held_up(chance, slow, free, busy) for _ in range(150)]
    told = sorted(found.times / gain for gain, found in pairs if found.times is not None)
    assert len(told) > 15
    assert told[-1] < 1.5
    assert told[len(told) * 95 // 100] < 1.3
