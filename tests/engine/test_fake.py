"""The scripted engine's own part; what it shares with the real one is `test_contract`'s."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.conversation import ChatMessage, Role
from app.engine import (
    Ask,
    AskParams,
    Decoded,
    Failed,
    FakeEngine,
    Finished,
    Load,
    Loaded,
    LoadParams,
    Measure,
    PlainMeasured,
    Script,
)
from app.errors import EngineError

from .conftest import chat
from .listening import Listener

LOAD = Load(LoadParams(Path("demo.gguf"), Path("draft.gguf")))
GO = Ask(chat("go"), AskParams())


def listener(script: Script | None = None, batch: int = 1) -> tuple[FakeEngine, Listener]:
    engine = FakeEngine(script or Script(), batch=batch)
    client = Listener(engine.client())
    client.run(LOAD)
    return engine, client


def test_it_streams_its_script() -> None:
    _, client = listener(Script(text="one two three four five six seven", accepted=(2, 0)))
    events = client.of(client.submit(GO))
    assert isinstance(events[-1], Finished)
    assert events[-1].answer.text == "one two three four five six seven"
    assert events[-1].answer.totals.accepted_per_round == (2, 0, 1)


def test_thinking_comes_apart() -> None:
    _, client = listener(Script(text="yes it is", reasoning="let me see", accepted=(4,)))
    ending = client.run(Ask(chat("go"), AskParams(think=True)))
    assert isinstance(ending, Finished)
    assert (ending.answer.reasoning, ending.answer.text) == ("let me see", "yes it is")


@pytest.mark.parametrize("batch", [1, 3])
def test_time_passes_with_every_drain(batch: int) -> None:
    _, client = listener(batch=batch)
    client.until(PlainMeasured)
    client.submit(GO)
    assert len(client.client.drain()) == batch
    assert len(client.client.drain()) == batch


def test_a_failure_of_each_kind() -> None:
    wrong = EngineError("It fell over.", remedy="Restart.")
    engine, client = listener()
    engine.script.error = engine.script.measure_error = wrong
    for command in (GO, Measure()):
        failed = client.run(command)
        assert isinstance(failed, Failed)
        assert failed.error is wrong
    engine.script.load_error = wrong
    assert isinstance(client.run(LOAD), Failed)


def test_what_it_was_asked_is_kept() -> None:
    engine, client = listener()
    client.run(GO)
    assert engine.loads == [LOAD]
    assert engine.asked == [GO]
    assert engine.commands == [LOAD, GO]


def test_every_step_is_one_event() -> None:
    engine, client = listener()
    request = client.submit(GO)
    seen = 0
    while engine.step():
        seen += 1
    events = [e for e in client.client.drain() if isinstance(e, Decoded | Loaded | Finished)]
    assert seen == len(events) + 3  # the prompt, the plain rate, and the probe
    assert request


def test_it_goes_on_with_an_answer() -> None:
    engine = FakeEngine(Script(text="one two three"), batch=100)
    client = engine.client()
    client.submit(LOAD)
    chat = (ChatMessage(Role.USER, "Go"), ChatMessage(Role.ASSISTANT, "one two"))
    client.submit(Ask(chat, AskParams()))
    finished = next(e for e in client.drain() if isinstance(e, Finished))
    assert finished.answer.text == " three"
