from __future__ import annotations

from pathlib import Path

from app.engine import (
    Ask,
    AskParams,
    Cancel,
    Decoded,
    Event,
    Failed,
    FakeEngine,
    Finished,
    FinishReason,
    Load,
    Loaded,
    LoadParams,
    Script,
    Unload,
    Unloaded,
)

from .conftest import chat

LOAD = Load(1, LoadParams(Path("demo.gguf"), Path("draft.gguf")))


def drain(engine: FakeEngine) -> list[Event]:
    events: list[Event] = []
    while new := engine.drain():
        events += new
    return events


def test_it_streams_its_script_and_counts_like_the_real_one() -> None:
    engine = FakeEngine(Script(text="one two three four five six seven", accepted=(2, 0)))
    engine.submit(LOAD)
    engine.submit(Ask(2, chat("go"), AskParams()))
    events = drain(engine)
    assert any(isinstance(e, Loaded) for e in events)
    answer = next(e.answer for e in events if isinstance(e, Finished))
    assert answer.text == engine.script.text
    assert "".join(e.text for e in events if isinstance(e, Decoded)) == answer.text
    assert answer.completion_tokens == 1 + answer.accepted + answer.rounds


def test_thinking_comes_apart() -> None:
    engine = FakeEngine(Script(text="yes it is", reasoning="let me see", accepted=(4,)))
    engine.submit(LOAD)
    engine.submit(Ask(2, chat("go"), AskParams(think=True)))
    answer = next(e.answer for e in drain(engine) if isinstance(e, Finished))
    assert (answer.reasoning, answer.text) == ("let me see", "yes it is")


def test_cancel_and_failure() -> None:
    engine = FakeEngine()
    engine.submit(Ask(1, chat("go"), AskParams()))
    assert isinstance(drain(engine)[-1], Failed)
    engine.submit(LOAD)
    engine.submit(Ask(2, chat("go"), AskParams()))
    engine.submit(Cancel(2))
    last = drain(engine)[-1]
    assert isinstance(last, Finished)
    assert last.answer.finish_reason is FinishReason.CANCELLED
    engine.submit(Unload(3))
    assert isinstance(drain(engine)[-1], Unloaded)
    engine.close()
    assert engine.closed
