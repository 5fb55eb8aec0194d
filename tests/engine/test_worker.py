"""The thread: order, cancel at any moment (C25), failures it survives, closing."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest

from app.engine import (
    Ask,
    AskParams,
    Backend,
    Cancel,
    ChatMessage,
    Decoded,
    Engine,
    Event,
    Failed,
    Finished,
    FinishReason,
    Load,
    Loaded,
    LoadParams,
    PlainMeasured,
    Role,
    Unload,
    Unloaded,
)
from app.errors import EngineError, ModelFileError
from app.library import Pair

from .conftest import chat

QUESTION = chat("What is DFlash?")


@pytest.fixture
def engine(demo_files: Pair) -> Iterator[Engine]:
    running = Engine()
    params = LoadParams(demo_files.target, demo_files.draft, Backend.CPU, n_ctx=8192)
    running.submit(Load(1, params))
    assert isinstance(until(running, Loaded, PlainMeasured, Failed)[-1], Loaded)
    yield running
    running.close()


def until(engine: Engine, *kinds: type, timeout: float = 60.0) -> list[Event]:
    """Events up to the first of one of these kinds."""
    events: list[Event] = []
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        for event in engine.wait(0.1):
            events.append(event)
            if isinstance(event, kinds):
                return events
    raise AssertionError(f"no {kinds} in {events}")


def text_of(events: list[Event]) -> str:
    return "".join(e.text for e in events if isinstance(e, Decoded))


def test_commands_are_answered_in_order(engine: Engine) -> None:
    for request in (2, 3, 4):
        engine.submit(Ask(request, QUESTION, AskParams(max_tokens=20)))
    finished = [until(engine, Finished)[-1].request for _ in range(3)]
    assert finished == [2, 3, 4]


def test_cancel_in_the_same_moment_as_send(engine: Engine) -> None:
    engine.submit(Ask(2, QUESTION, AskParams()))
    engine.submit(Cancel(2))
    answer = until(engine, Finished)[-1].answer
    assert answer.finish_reason is FinishReason.CANCELLED


def test_a_waiting_command_can_be_cancelled(engine: Engine) -> None:
    engine.submit(Ask(2, QUESTION, AskParams()))
    engine.submit(Ask(3, QUESTION, AskParams()))
    engine.submit(Cancel(3))
    assert until(engine, Finished)[-1].answer.finish_reason is FinishReason.STOP
    assert until(engine, Finished)[-1].answer.finish_reason is FinishReason.CANCELLED


def test_cancel_in_a_long_prefill_comes_back_within_a_second(engine: Engine) -> None:
    engine.submit(Ask(2, chat("round " * 6000), AskParams()))
    time.sleep(0.1)
    start = time.monotonic()
    engine.submit(Cancel(2))
    events = until(engine, Finished)
    assert time.monotonic() - start < 1.0
    assert events[-1].answer.finish_reason is FinishReason.CANCELLED
    assert events[-1].answer.token_ids == ()


def test_a_hundred_cancels_at_random_then_an_answer_like_a_cold_one(engine: Engine) -> None:
    engine.submit(Ask(2, QUESTION, AskParams()))
    whole = until(engine, Finished)[-1].answer
    chooser = random.Random(25)
    for request in range(3, 103):
        engine.submit(Ask(request, QUESTION, AskParams()))
        time.sleep(chooser.uniform(0.0, 0.02))
        engine.submit(Cancel(request))
        events = until(engine, Finished)
        answer = events[-1].answer
        assert answer.text == text_of(events)
        assert whole.token_ids[: len(answer.token_ids)] == answer.token_ids
    engine.submit(Ask(200, QUESTION, AskParams()))
    assert until(engine, Finished)[-1].answer.token_ids == whole.token_ids
    turn = (*QUESTION, ChatMessage(Role.ASSISTANT, whole.text), *chat("And what is a round?"))
    engine.submit(Ask(201, turn, AskParams()))
    warm = until(engine, Finished)[-1].answer
    engine.submit(Ask(202, chat("Hello"), AskParams()))
    until(engine, Finished)
    engine.submit(Ask(203, turn, AskParams()))
    assert until(engine, Finished)[-1].answer.token_ids == warm.token_ids


def test_a_failed_load_leaves_an_engine_that_works(engine: Engine, demo_files: Pair) -> None:
    missing = demo_files.target.with_name("missing.gguf")
    engine.submit(Load(2, LoadParams(missing)))
    failed = until(engine, Failed)[-1]
    assert isinstance(failed.error, ModelFileError)
    assert "missing.gguf" in failed.error.message
    engine.submit(Ask(3, QUESTION, AskParams()))
    assert isinstance(until(engine, Failed)[-1].error, EngineError)
    engine.submit(Load(4, LoadParams(demo_files.target, None, Backend.CPU)))
    until(engine, Loaded)
    engine.submit(Ask(5, QUESTION, AskParams(max_tokens=5)))
    until(engine, Finished)


def test_an_over_long_prompt_is_a_failure_and_no_end(engine: Engine) -> None:
    engine.submit(Ask(2, chat("round " * 9000), AskParams()))
    assert "tokens" in until(engine, Failed)[-1].error.message
    engine.submit(Ask(3, QUESTION, AskParams()))
    assert until(engine, Finished)[-1].answer.text


def test_unload_frees_and_is_told(engine: Engine) -> None:
    engine.submit(Unload(2))
    until(engine, Unloaded)
    engine.submit(Ask(3, QUESTION, AskParams()))
    until(engine, Failed)


def test_plain_is_measured_when_nothing_waits(engine: Engine) -> None:
    events = until(engine, PlainMeasured)
    assert events[-1].tokens_per_s > 0


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.2])
def test_close_while_busy_joins_the_thread(demo_files: Pair, delay: float) -> None:
    engine = Engine()
    engine.submit(Load(1, LoadParams(demo_files.target, demo_files.draft, Backend.CPU)))
    for request in range(2, 6):
        engine.submit(Ask(request, QUESTION, AskParams()))
    time.sleep(delay)
    start = time.monotonic()
    engine.close()
    assert time.monotonic() - start < 5.0
    assert not any(t.name == "slipstream-engine" for t in threading.enumerate())
    engine.submit(Ask(9, QUESTION, AskParams()))  # ignored
    engine.close()  # a second close does nothing


def test_a_model_can_be_replaced_ten_times(engine: Engine, demo_files: Pair) -> None:
    for request in range(2, 12):
        draft = demo_files.draft if request % 2 else None
        engine.submit(Load(request, LoadParams(demo_files.target, draft, Backend.CPU)))
        engine.submit(Ask(100 + request, QUESTION, AskParams(max_tokens=8)))
        loaded = next(e for e in until(engine, Loaded) if isinstance(e, Loaded))
        assert loaded.model.has_draft is bool(draft)
        until(engine, Finished)
