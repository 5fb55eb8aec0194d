"""Why: each reason where it is the reason, and none where nothing shows it."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from app.engine import Figures, FinishReason, Pace, Plain, RoundTally, RoundTotals, Script
from app.ui.look.why import acceptance, reasons
from app.ui.meters.model import Meters
from app.ui.meters.verdict import verdict
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine
from tests.ui.meters.test_meters import MODEL, answer, record, shown

__all__ = ["shown"]  # a fixture


def totals(*accepted: int, drafted: int = 7, ms: float = 40.0) -> RoundTotals:
    tally = RoundTally()
    for n in accepted:
        tally.add(record(n, drafted, ms))
    return tally.totals


CLIFF = totals(*[1, 1, 0] * 14)
TURNS = totals(*([0] * 8 + [7]) * 10)
DAMAGED = totals(*[0] * 30, *[1] * 10, *[2] * 10)

GOOD = Figures(
    finish_reason=FinishReason.STOP,
    completion_tokens=200,
    prompt_tokens=50,
    reused=0,
    prefill_ms=80.0,
    totals=totals(*[4, 5, 7, 3] * 10),
    plain_tokens_per_s=50.0,
    backend="cpu",
    device="A CPU",
    seed=None,
    loaded_tokens_per_s=52.0,
    pace=1.1,
)


def test_there_is_no_reason_where_all_went_well() -> None:
    assert reasons(GOOD) == []


@pytest.mark.parametrize(
    ("changes", "begins"),
    [
        ({"waited_ms": 4_200.0}, "It waited 4.2 s for its turn"),
        (
            {"prefill_ms": 6_000.0, "prompt_tokens": 3_000},
            "Much of the time went into reading the prompt: 3,000 tokens in 6.0 s.",
        ),
        ({"fallback": "The GPU is too small."}, "It ran on the CPU and not on a GPU: The GPU"),
        ({"plain_tokens_per_s": 26.0}, "The machine was busy. A plain step took 2.0 ×"),
        (
            {"plain_tokens_per_s": 26.0, "prompt_tokens": 9_000},
            "A plain step took 2.0 × as long as when the model was loaded: the machine was busy, "
            "or it is the context, which is long (9,200 tokens).",
        ),
        ({"pace": 2.0}, "The machine became busy meanwhile"),
        (
            {"pace": 2.0, "prompt_tokens": 9_000},
            "The machine became busy, or the context long, meanwhile",
        ),
        ({"plain_tokens_per_s": 26.0, "prompt_tokens": 4_000}, "The machine was busy. A plain"),
        ({"pace": 0.5}, "The machine became freer meanwhile"),
        ({"totals": totals(*[0] * 30, drafted=0), "paused": True}, "Nothing was drafted"),
        ({"totals": totals(*[0] * 30)}, "Hardly a guess held"),
        ({"totals": CLIFF}, "First guesses held (67%), and none after them"),
        ({"totals": TURNS}, "Few guesses held (11% of the first ones), but 100% of those after"),
        ({"totals": DAMAGED}, "Few guesses held (40% of the first ones), and of those after a"),
        ({"totals": totals(*[0, 0, 0, 0, 1] * 6)}, "Few guesses held (20% of the first ones)."),
        (
            {"totals": totals(*[0] * 30), "temperature": 2.0},
            "Few guesses held (0% of the first ones): at a temperature of 2.0",
        ),
        (
            {"totals": TURNS, "prompt_tokens": 9_000},
            "Few guesses held (11% of the first ones), but 100% of those after a right one: text "
            "in this language or of this kind, or with a context this long, is hard",
        ),
    ],
)
def test_each_reason_alone(changes: dict[str, object], begins: str) -> None:
    (told,) = reasons(replace(GOOD, **changes))  # type: ignore[arg-type]
    assert told.startswith(begins)


@pytest.mark.parametrize(
    "changes",
    [
        {"prefill_ms": 900.0},  # short
        {"plain_tokens_per_s": None},  # not measured in the same minute
        {"loaded_tokens_per_s": None},
        {"pace": 1.4},
        {"pace": 0.0},
        {"waited_ms": 300.0},
        {"totals": totals(*[0] * 30, drafted=0)},  # no drafter, or it was not to draft
        {"paused": True},  # for a while
        {"totals": totals(*[0] * 12)},  # too few to say what it is
    ],
)
def test_no_reason_without_measure(changes: dict[str, object]) -> None:
    assert reasons(replace(GOOD, **changes)) == []  # type: ignore[arg-type]


def test_what_was_looked_up_says_nothing_of_the_drafter() -> None:
    copied = RoundTotals(rounds=9, drafted=36, accepted=36, looked_up=36, looked_up_accepted=36)
    (told,) = reasons(replace(GOOD, totals=totals(*[0] * 80) + copied))
    assert told.startswith("Hardly a guess held")


@pytest.mark.parametrize(
    ("first", "later", "says"),
    [
        # What was measured of the demo pair: see `why`.
        (0.12, 0.81, "hard to guess"),
        (0.22, 0.70, "too little of the text"),
        (0.11, 0.60, "too little of the text"),
        (0.17, 0.59, "too little of the text"),
        (0.28, 0.52, "too coarsely"),
        (0.19, 0.25, "too coarsely"),
        (0.02, 0.00, "Hardly a guess held"),
        (0.01, 0.00, "Hardly a guess held"),
    ],
)
def test_a_shape_that_was_measured_is_told_as_what_it_was(
    first: float, later: float, says: str
) -> None:
    blocks = []
    for i in range(400):  # a block whose guesses hold with these shares, spread evenly
        kept = 0
        if int((i + 1) * first) > int(i * first):
            n = int(i * first)
            share = later / (1 - later) if later < 1 else 7.0
            kept = min(7, 1 + int((n + 1) * share) - int(n * share))
        blocks.append(kept)
    told = acceptance(replace(totals(*blocks), drafted=15 * 400))
    assert says in told
    assert "report it" not in told


def test_only_a_cliff_is_to_be_reported() -> None:
    assert "report it" in acceptance(CLIFF)
    assert "report it" not in acceptance(TURNS)
    assert "report it" not in acceptance(DAMAGED)


# --- an engine that slows down in the middle ----------------------------------------------


def test_pace_compares_rounds_of_one_width() -> None:
    pace = Pace()
    for _ in range(40):  # wide rounds cost more than plain steps, and that is no change
        pace.add(record(0, drafted=0, ms=10.0))
    for _ in range(40):
        pace.add(record(3, drafted=15, ms=40.0))
    assert pace.change == pytest.approx(1.0)
    assert Pace().change is None


@pytest.mark.parametrize(
    ("times", "change"),
    [
        ([10.0] * 100, 1.0),
        ([10.0] * 40 + [50.0] * 60, 5.0),  # from the middle on
        ([10.0] * 40 + [50.0] * 40 + [10.0] * 20, 2.6),  # for a while
        ([10.0] * 90 + [12.0] * 10, 1.2),
        ([50.0] * 20 + [10.0] * 80, 0.2),
        ([10.0] * 50 + [3_000.0] + [10.0] * 49, 4.0),  # one that stands still
        ([10.0] * 500 + [50.0] * 16 + [10.0] * 484, 1.06),  # too short to matter
        ([10.0] * 7 + [200.0], 0.0),  # few, and one of them is no measure
        ([10.0] * 7 + [20.0], None),
        ([10.0, 200.0], None),
    ],
)
def test_pace_is_that_of_the_whole_answer(times: list[float], change: float | None) -> None:
    pace = Pace()
    for ms in times:
        pace.add(record(3, ms=ms))
    assert pace.change == (change if change is None else pytest.approx(change, rel=0.02))


@pytest.mark.parametrize("after", [0, 40])
def test_no_ratio_where_the_engine_slows_down_in_the_middle(shown: Meters, after: int) -> None:
    shown.set_plain(Plain(120.0))  # of the last minute
    shown.counters.add([record(3, ms=10.0)] * 40)
    assert shown.speedup.times is not None
    shown.counters.add([record(3, ms=50.0)] * 40)
    shown.counters.add([record(3, ms=10.0)] * after)
    assert shown.speedup.times is None
    assert str(verdict(shown)) == (
        "Drafting. The machine's pace changed meanwhile, so no speed-up is told."
    )
    figures = replace(GOOD, pace=5.0)
    assert figures.speedup.times is None
    assert "no speed-up is told" in " ".join(reasons(figures)).lower()


def test_an_engine_that_slows_down_in_the_middle_is_told_as_that(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    engine = BatchEngine(Script(text="one two three " * 200, plain_tokens_per_s=100.0))
    window = open_window(engine)
    meters = window.meters
    wait_until(lambda: meters.plain is not None)
    window.controller.ask("Go")
    wait_until(lambda: meters.counters.totals.rounds > 40)
    assert meters.speedup.times is not None
    engine.script.round_ms = 60.0
    wait_until(lambda: meters.counters.totals.rounds > 90)
    assert meters.speedup.times is None
    assert "×" not in window.header.chip.state.text
    engine.script.round_ms = 10.0  # it was so for a while only
    wait_until(lambda: not window.controller.busy)
    answer = window.controller.current.last_answer
    assert answer is not None
    assert isinstance(answer.figures, Figures)
    assert answer.figures.speedup.times is meters.speedup.times is None
    (told,) = reasons(answer.figures)
    assert told.startswith("The machine became busy meanwhile: a step took ")


# --- the chat on view ---------------------------------------------------------------------


def test_an_answer_as_it_was(shown: Meters) -> None:
    shown.set_plain(Plain(10.0))
    shown.show("t1", GOOD)
    assert shown.counters.totals == GOOD.totals
    assert shown.speedup.times == GOOD.speedup.times  # beside the plain rate of then
    assert not shown.counters.last
    shown.set_model(replace(MODEL, block=0))
    assert verdict(shown).figure  # what is loaded now plays no part
    shown.show("", None)
    assert str(verdict(shown)) == "No drafter is loaded: one token at a time."


# --- a plain rate of the same minute ------------------------------------------------------


def test_a_plain_rate_of_long_ago_is_no_measure(
    shown: Meters, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown.set_plain(Plain(100.0))
    shown.counters.add([record(3)] * 4)
    assert shown.speedup.times == pytest.approx(4.0)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    assert shown.speedup.times is None
    assert str(verdict(shown)) == "Drafting. How much faster is not measured yet."


def test_a_plain_rate_of_another_context_is_no_measure(shown: Meters) -> None:
    shown.set_plain(Plain(100.0))  # as it is when a model was loaded: nothing is in the context
    for context, measured in ((400, True), (5_000, False)):
        shown.counters.context = context
        shown.counters.add([record(3, ms=30.0)] * 4)
        assert (shown.speedup.times is not None) is measured
    assert str(verdict(shown)) == "Drafting. How much faster is not measured yet."
    shown.counters.add([record(0, drafted=0, ms=20.0)] * 3)  # its own are
    assert shown.plain == pytest.approx(50.0)


def test_a_long_question_has_no_ratio_by_a_short_one(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    window = open_window(BatchEngine(Script(text="one two three " * 40)))
    meters = window.meters
    wait_until(lambda: meters.plain is not None)
    for question, measured in (("Go", True), ("word " * 2_000, False)):
        window.controller.ask(question)
        wait_until(lambda: meters.counters.totals.rounds > 4)
        assert window.controller.busy
        assert (meters.speedup.times is not None) is measured
        wait_until(lambda: not window.controller.busy)


def test_an_answers_own_plain_steps_are_a_measure(
    shown: Meters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as they are of its last minute."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 3_600)
    shown.counters.add([record(0, drafted=0, ms=20.0)] * 4)
    shown.counters.add([record(3, ms=30.0)] * 96)
    assert shown.plain == pytest.approx(50.0)
    assert shown.speedup.times is not None
    shown.counters.add([record(3, ms=30_000.0)] * 3)
    assert shown.plain is None


def test_the_ratio_of_an_answer_that_ended_stays(
    shown: Meters, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown.counters.add([record(3)] * 4)
    shown._end(shown.counters, answer(plain=Plain(100.0)))
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 3_600)
    assert shown.speedup.times == pytest.approx(4.0)
