"""The thread: order, cancel at any moment, failures it survives, closing."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app import paths
from app.binding import NativePair, NativeRound
from app.conversation import ChatMessage, Role
from app.engine import (
    Ask,
    AskParams,
    Backend,
    Command,
    Count,
    Counted,
    Decoded,
    Engine,
    Event,
    ExactnessProbed,
    Failed,
    Finished,
    FinishReason,
    Load,
    Loaded,
    LoadParams,
    Measure,
    Measured,
    ModelChanged,
    Plain,
    PlainMeasured,
    Unmeasured,
    worker,
)
from app.engine.pair import LoadedPair
from app.engine.worker import Worker
from app.errors import DeviceError, EngineError
from app.jobs import JobCancelled
from app.library import Pair

from .conftest import chat
from .listening import PATIENCE, Listener

QUESTION = chat("What is DFlash?")


@pytest.fixture
def load(demo_files: Pair) -> Load:
    return Load(LoadParams(demo_files.target, demo_files.draft, Backend.CPU, n_ctx=8192, threads=1))


@pytest.fixture
def engine(load: Load) -> Iterator[Listener]:
    """A client whose engine has loaded the demo pair."""
    running = Engine()
    client = Listener(running.client())
    assert isinstance(client.run(load), Loaded)
    yield client
    running.close()


def ask(engine: Listener, turns: tuple[ChatMessage, ...], **params: int) -> Finished:
    ending = engine.run(Ask(turns, AskParams(**params)))
    assert isinstance(ending, Finished)
    return ending


def text_of(events: list[Event]) -> str:
    return "".join(e.text for e in events if isinstance(e, Decoded))


def test_cancel_in_a_long_prefill_comes_back_soon(engine: Listener) -> None:
    engine.run(Measure())
    request = engine.submit(Ask(chat("round " * 6000), AskParams()))
    time.sleep(0.1)
    start = time.monotonic()
    engine.cancel(request)
    ending = engine.of(request)[-1]
    assert time.monotonic() - start < 1.0
    assert isinstance(ending, Finished)
    assert ending.answer.finish_reason is FinishReason.CANCELLED
    assert ending.answer.token_ids == ()


def test_a_hundred_cancels_at_random_then_an_answer_like_a_cold_one(engine: Listener) -> None:
    whole = ask(engine, QUESTION).answer
    chooser = random.Random(25)
    for _ in range(100):
        request = engine.submit(Ask(QUESTION, AskParams()))
        time.sleep(chooser.uniform(0.0, 0.02))
        engine.cancel(request)
        events = engine.of(request)
        assert isinstance(events[-1], Finished)
        answer = events[-1].answer
        assert answer.text == text_of(events)
        assert whole.token_ids[: len(answer.token_ids)] == answer.token_ids
    assert ask(engine, QUESTION).answer.token_ids == whole.token_ids
    turn = (*QUESTION, ChatMessage(Role.ASSISTANT, whole.text), *chat("And what is a round?"))
    warm = ask(engine, turn).answer
    ask(engine, chat("Hello"))
    assert ask(engine, turn).answer.token_ids == warm.token_ids


def test_an_over_long_prompt_is_a_failure_and_no_end(engine: Listener) -> None:
    failed = engine.run(Ask(chat("round " * 9000), AskParams()))
    assert isinstance(failed, Failed)
    assert "tokens" in failed.error.message
    assert ask(engine, QUESTION).answer.text


def test_plain_is_measured_when_nothing_waits(engine: Listener) -> None:
    assert engine.first(PlainMeasured).plain.tokens_per_s


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.2])
def test_close_while_busy_joins_the_thread(load: Load, delay: float) -> None:
    engine = Engine()
    client = Listener(engine.client())
    client.submit(load)
    asked = [client.submit(Ask(QUESTION, AskParams())) for _ in range(4)]
    time.sleep(delay)
    start = time.monotonic()
    engine.close()
    assert time.monotonic() - start < 5.0
    assert not any(t.name == "slipstream-engine" for t in threading.enumerate())
    for request in asked:
        assert isinstance(client.of(request)[-1], Finished)


def test_a_model_can_be_replaced_ten_times(engine: Listener, demo_files: Pair) -> None:
    for turn in range(10):
        draft = demo_files.draft if turn % 2 else None
        loaded = engine.run(Load(LoadParams(demo_files.target, draft, Backend.CPU, threads=1)))
        assert isinstance(loaded, Loaded)
        assert loaded.model.has_draft is bool(draft)
        ask(engine, QUESTION, max_tokens=8)


# --- errands: measuring, which gives way --------------------------------------


def test_a_question_goes_before_measuring(load: Load) -> None:
    """50 ms after `Loaded`, in the middle of it: the first text comes before any figure."""
    engine = Engine()
    try:
        client = Listener(engine.client())
        client.run(load)
        time.sleep(0.05)
        request = client.submit(Ask(QUESTION, AskParams(max_tokens=8)))
        before = client.until(Finished)
        assert before[-1].request == request  # type: ignore[union-attr]
        assert not [e for e in before if isinstance(e, PlainMeasured)]
        assert client.first(PlainMeasured).plain.tokens_per_s  # taken up again
    finally:
        engine.close()


def test_measuring_is_waited_for_by_who_asks(load: Load) -> None:
    engine = Engine()
    try:
        client = Listener(engine.client())
        client.run(load)
        events = client.until(Measured) if client.submit(Measure()) else []
        assert [type(e) for e in events if isinstance(e, PlainMeasured)] == [PlainMeasured]
        told = ask(client, QUESTION, max_tokens=40).answer.speedup
        assert told.times or told.why in (Unmeasured.UNEVEN, Unmeasured.PACE)  # a busy machine's
        assert isinstance(client.run(Measure()), Measured)  # nothing is left to measure
    finally:
        engine.close()


def test_a_rate_that_cannot_be_measured_is_told(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = EngineError("It fell over.", remedy="Restart.")

    def fail(_: LoadedPair) -> Plain:
        raise wrong

    monkeypatch.setattr(LoadedPair, "measure_plain", fail)
    engine = Engine()
    try:
        client = Listener(engine.client())
        client.run(load)
        assert client.first(PlainMeasured) == PlainMeasured(Plain(), wrong)
        assert ask(client, QUESTION, max_tokens=8).answer.speedup.times is None
    finally:
        engine.close()


def test_whether_it_is_exact_is_told_once_and_after_a_question(
    load: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Asked in the middle of the probe: the answer comes first, the probe is taken up again."""
    monkeypatch.setattr(paths, "cache", lambda: tmp_path)
    began = threading.Event()
    probe = LoadedPair.probe_exact

    def watched(pair: LoadedPair) -> bool | None:
        began.set()
        return probe(pair)

    monkeypatch.setattr(LoadedPair, "probe_exact", watched)
    engine = Engine()
    try:
        client = Listener(engine.client())
        loaded = client.run(load)
        assert isinstance(loaded, Loaded)
        assert loaded.model.exact is None
        assert began.wait(PATIENCE)
        client.submit(Ask(QUESTION, AskParams(max_tokens=8)))
        assert not [e for e in client.until(Finished) if isinstance(e, ExactnessProbed)]
        assert client.first(ExactnessProbed).exact
        again = client.run(load)  # known from now on
        assert isinstance(again, Loaded)
        assert again.model.exact
        client.run(Measure(exact=True))
        assert not [e for e in client.rest() if isinstance(e, ExactnessProbed)]
    finally:
        engine.close()


# --- closing and failing at the wrong moment ----------------------------------


def test_closing_between_two_commands(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next command is taken from the queue, and does not run yet."""
    taken, closing = threading.Event(), threading.Event()
    run = Worker._run

    def later(self: Worker, request: int, command: Command) -> None:
        if isinstance(command, Ask):
            taken.set()
            assert closing.wait(PATIENCE)
        run(self, request, command)

    monkeypatch.setattr(Worker, "_run", later)
    engine = Engine()
    client = Listener(engine.client())
    client.run(load)
    request = client.submit(Ask(QUESTION, AskParams(max_tokens=4000)))
    assert taken.wait(PATIENCE)
    closer = threading.Thread(target=engine.close, args=(PATIENCE,))
    closer.start()
    while not engine._worker._closing:
        time.sleep(0.001)
    closing.set()
    closer.join(PATIENCE)
    assert not closer.is_alive()
    ending = client.of(request)[-1]
    assert isinstance(ending, Finished)
    assert ending.answer.finish_reason is FinishReason.CANCELLED


def test_closing_while_it_measures(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    measuring = threading.Event()
    measure = LoadedPair.measure_plain

    def told(self: LoadedPair) -> float | None:
        measuring.set()
        return measure(self)

    monkeypatch.setattr(LoadedPair, "measure_plain", told)
    engine = Engine()
    Listener(engine.client()).run(load)
    assert measuring.wait(PATIENCE)
    engine.close(PATIENCE)


def test_a_count_waits_for_no_probe(engine: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed is counted, and sent, at once; then the probe is made all the same."""
    probing = threading.Event()
    tries = 0

    def probe(self: LoadedPair) -> bool | None:
        nonlocal tries
        tries += 1
        probing.set()
        while tries == 1 and not self.native.cancelled:
            time.sleep(0.01)
        if tries == 1:
            raise JobCancelled
        return True

    monkeypatch.setattr(worker, "_CALM_S", 0.1)
    monkeypatch.setattr(LoadedPair, "probe_exact", probe)
    assert probing.wait(PATIENCE)
    assert isinstance(engine.run(Count(QUESTION)), Counted)
    assert engine.first(ExactnessProbed).exact
    assert tries == 2


@pytest.mark.parametrize("lost", [False, True])
def test_a_device_that_fails(engine: Listener, monkeypatch: pytest.MonkeyPatch, lost: bool) -> None:
    """Once: the answer fails. For good: the pair goes, and every client is told why."""
    engine.run(Measure())
    engine.rest()
    failures = 1000 if lost else 1
    step = NativePair.round

    def fail(self: NativePair, n_draft: int, **options: Any) -> NativeRound:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise DeviceError("A pass failed.", remedy="Choose the CPU.")
        return step(self, n_draft, **options)

    monkeypatch.setattr(NativePair, "round", fail)
    engine.submit(Ask(QUESTION, AskParams(max_tokens=20)))
    told = engine.until(Failed)  # who asks on then knows that there is no model any more
    failed = told[-1]
    assert isinstance(failed, Failed)
    states = [e for e in told if isinstance(e, ModelChanged)]
    assert states == ([ModelChanged(None, failed.error)] if lost else [])
    again = engine.run(Ask(QUESTION, AskParams(max_tokens=20)))
    assert isinstance(again, Failed if lost else Finished)
