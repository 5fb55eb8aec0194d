"""What `app.engine.door` promises, held by the engine and by the scripted one alike."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest

from app import paths
from app.conversation import ChatMessage, Role
from app.engine import (
    Ask,
    AskParams,
    Backend,
    Cancelled,
    Command,
    Compare,
    Compared,
    Count,
    Counted,
    Decoded,
    Devices,
    Ending,
    Engine,
    EngineDoor,
    Event,
    ExactnessProbed,
    Failed,
    FakeEngine,
    Finished,
    FinishReason,
    ListDevices,
    Load,
    Loaded,
    LoadedModel,
    Loading,
    LoadParams,
    Measure,
    Measured,
    ModelChanged,
    PlainMeasured,
    Prefilled,
    Reading,
    ThinkingEnd,
    Unload,
    Unloaded,
    answering,
    fake,
)
from app.errors import EngineError, ModelFileError
from app.library import Pair

from .conftest import chat
from .listening import PATIENCE, Listener, owner

QUESTION = Ask(chat("What is DFlash?"), AskParams(max_tokens=40))


@pytest.fixture(params=["real", "scripted"])
def door(request: pytest.FixtureRequest) -> Iterator[EngineDoor]:
    engine = Engine() if request.param == "real" else FakeEngine()
    yield engine
    engine.close()


@pytest.fixture
def listener(door: EngineDoor) -> Listener:
    return Listener(door.client())


@pytest.fixture
def load(demo_files: Pair) -> Load:
    return Load(LoadParams(demo_files.target, demo_files.draft, Backend.CPU, n_ctx=512, threads=1))


@pytest.fixture
def failing(door: EngineDoor, tmp_path: Path) -> Callable[[], Load]:
    """A load that fails from now on."""

    def fail() -> Load:
        if isinstance(door, FakeEngine):
            door.script.load_error = ModelFileError("It is not there.", remedy="Look again.")
        return Load(LoadParams(tmp_path / "missing.gguf"))

    return fail


def test_a_load_ends_with_what_was_loaded(listener: Listener, load: Load) -> None:
    request = listener.submit(load)
    events = listener.until(Loaded)
    assert all(owner(e) in (request, None) for e in events)
    fractions = [e.fraction for e in events if isinstance(e, Loading)]
    assert fractions == sorted(fractions)
    changed = [e for e in events if isinstance(e, ModelChanged)]
    assert isinstance(events[-1], Loaded)
    assert [e.model for e in changed] == [events[-1].model]
    assert events[-1].model.has_draft
    assert listener.first(PlainMeasured).plain.tokens_per_s


def test_an_answer_comes_in_order(listener: Listener, load: Load) -> None:
    listener.run(load)
    events = listener.of(listener.submit(QUESTION))
    kinds = [type(e) for e in events]
    assert kinds[0] is Prefilled
    assert set(kinds[1:-1]) == {Decoded}
    assert kinds[-1] is Finished
    assert isinstance(events[-1], Finished)
    answer = events[-1].answer
    assert "".join(e.text for e in events if isinstance(e, Decoded)) == answer.text != ""
    records = [e.round for e in events if isinstance(e, Decoded) and e.round]
    assert len(records) == answer.totals.rounds
    assert answer.completion_tokens == 1 + answer.totals.accepted + answer.totals.rounds
    texts = dict(answer.outside)
    for record in records:
        texts |= zip(record.token_ids, record.emitted, strict=True)
    assert set(texts) == set(answer.token_ids)
    assert "".join(texts[token] for token in answer.token_ids).startswith(answer.text[:8])


def test_every_command_has_its_end(listener: Listener, load: Load) -> None:
    ends: dict[Command, type] = {
        ListDevices(): Devices,
        load: Loaded,
        QUESTION: Finished,
        Measure(): Measured,
        Compare(QUESTION.chat, QUESTION.params, (1, 2, 3, 4), 2): Compared,
        Count(QUESTION.chat): Counted,
        Unload(): Unloaded,
    }
    assert {type(command) for command in ends} == set(get_args(Command))
    for command, kind in ends.items():
        assert type(listener.run(command)) is kind


def read_in_parts_of(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (answering, fake):
        monkeypatch.setattr(module, "_READ_AT_ONCE", tokens)


def test_a_count_is_what_an_answer_reads(listener: Listener, load: Load) -> None:
    listener.run(load)
    counted = listener.run(Count(QUESTION.chat))
    prefilled = listener.of(listener.submit(QUESTION))[0]
    assert isinstance(counted, Counted)
    assert isinstance(prefilled, Prefilled)
    assert counted.tokens == prefilled.prompt_tokens


def test_a_count_does_not_wait_for_an_answers_end(listener: Listener, load: Load) -> None:
    listener.run(load)
    asked = [listener.submit(Ask(QUESTION.chat, AskParams(max_tokens=400))) for _ in range(3)]
    listener.until(Decoded)
    counted = listener.of(listener.submit(Count(chat("word " * 5000))))[-1]
    assert isinstance(counted, Counted)
    assert counted.tokens > 5000 / 2  # though the context holds 512
    assert isinstance(listener.of(asked[-1])[-1], Finished)


def test_a_long_prompt_tells_how_far_it_is(
    listener: Listener, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener.run(load)
    question = Ask(chat("word " * 60), AskParams(max_tokens=1))
    whole = listener.of(listener.submit(question))
    assert not [e for e in whole if isinstance(e, Reading)]
    listener.run(Ask(chat("something else"), AskParams(max_tokens=1)))
    read_in_parts_of(16, monkeypatch)
    events = listener.of(listener.submit(question))
    told = [e for e in events if isinstance(e, Reading)]
    prefilled = events[len(told)]
    assert isinstance(prefilled, Prefilled)
    assert [e.done for e in told] == sorted({e.done for e in told})
    assert all(0 < e.done < e.total == prefilled.prompt_tokens for e in told)
    assert len(told) >= 2
    assert isinstance(events[-1], Finished)
    assert isinstance(whole[-1], Finished)
    assert events[-1].answer.token_ids == whole[-1].answer.token_ids


def test_devices_begin_with_the_cpu(listener: Listener) -> None:
    ending = listener.run(ListDevices())
    assert isinstance(ending, Devices)
    assert ending.devices[0].kind == "cpu"
    assert all(d.usable or d.reason for d in ending.devices)


def test_commands_are_worked_off_in_order(door: EngineDoor, load: Load) -> None:
    one, other = Listener(door.client()), Listener(door.client())
    one.run(load)
    asked = [client.submit(QUESTION) for client in (one, other, one, other)]
    assert asked == sorted(set(asked))
    for client, request in zip((one, other, one, other), asked, strict=True):
        assert client.first(Finished).request == request


def measured(model: LoadedModel | None) -> list[type[Event]]:
    """What everybody is told of a pair that was measured: whether it is exact only once."""
    assert model
    return [PlainMeasured] if model.exact is not None else [PlainMeasured, ExactnessProbed]


def test_nobody_hears_what_another_asked(door: EngineDoor, load: Load) -> None:
    one, other = Listener(door.client()), Listener(door.client())
    mine = {one.submit(load), one.submit(QUESTION)}
    theirs = {other.submit(QUESTION), other.submit(ListDevices())}
    heard = [client.until(Finished) for client in (one, other)]
    mine.add(one.submit(Measure(exact=True)))
    heard[0] += one.until(Measured)
    heard[1] += other.rest()
    assert {owner(e) for e in heard[0]} == {*mine, None}
    assert {owner(e) for e in heard[1]} == {*theirs, None}
    shared = [[e for e in events if owner(e) is None] for events in heard]
    assert shared[0] == shared[1]
    assert isinstance(shared[0][0], ModelChanged)
    assert [type(e) for e in shared[0][1:]] == measured(shared[0][0].model)


def test_a_late_client_is_told_what_is_loaded(door: EngineDoor, load: Load) -> None:
    first = Listener(door.client())
    loaded = first.run(load)
    first.run(Measure(exact=True))
    assert isinstance(loaded, Loaded)
    told = Listener(door.client()).rest()
    assert told[0] == ModelChanged(loaded.model)
    assert [type(e) for e in told[1:]] == measured(loaded.model)
    first.run(Unload())
    assert Listener(door.client()).rest() == []


def test_unloading_is_told_to_all(door: EngineDoor, load: Load) -> None:
    one, other = Listener(door.client()), Listener(door.client())
    one.run(load)
    other.until(ModelChanged)
    assert isinstance(one.run(Unload()), Unloaded)
    assert other.first(ModelChanged) == ModelChanged(None)
    assert isinstance(one.run(QUESTION), Failed)


def test_unloading_nothing_is_no_failure(listener: Listener) -> None:
    assert isinstance(listener.run(Unload()), Unloaded)


def test_an_unload_that_waits_behind_a_load(listener: Listener, load: Load) -> None:
    loading, unloading = listener.submit(load), listener.submit(Unload())
    assert isinstance(listener.of(loading)[-1], Loaded)
    assert isinstance(listener.of(unloading)[-1], Unloaded)
    assert isinstance(listener.run(QUESTION), Failed)  # and nothing fell over in between


def test_after_a_failed_load_nothing_is_loaded(
    listener: Listener, load: Load, failing: Callable[[], Load]
) -> None:
    listener.run(load)
    request = listener.submit(failing())
    failed = listener.of(request)[-1]
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, ModelFileError)
    states = [e for e in listener.rest() if isinstance(e, ModelChanged)]
    assert states[0].model is not None
    assert [s.model for s in states[1:]] == [None] * len(states[1:])
    assert states[-1].error == failed.error
    asked = listener.run(QUESTION)
    assert isinstance(asked, Failed)
    assert isinstance(asked.error, EngineError)


def test_a_cancelled_answer_is_what_there_is_of_it(listener: Listener, load: Load) -> None:
    listener.run(load)
    request = listener.submit(QUESTION)
    listener.until(Decoded)
    listener.cancel(request)
    ending = listener.of(request)[-1]
    assert isinstance(ending, Finished)
    assert ending.answer.finish_reason in (FinishReason.CANCELLED, FinishReason.LENGTH)


def test_cancel_in_the_same_moment_as_submit(listener: Listener, load: Load) -> None:
    listener.run(load)
    request = listener.submit(QUESTION)
    listener.cancel(request)
    ending = listener.of(request)[-1]
    assert isinstance(ending, Finished)
    assert ending.answer.finish_reason is FinishReason.CANCELLED


def test_what_waits_can_be_cancelled_and_ends_at_once(listener: Listener, load: Load) -> None:
    listener.run(load)
    first, second, third = (listener.submit(c) for c in (QUESTION, QUESTION, load))
    listener.cancel(second)
    listener.cancel(third)
    ending = listener.of(second)[-1]
    assert isinstance(ending, Finished)
    assert ending.answer.finish_reason is FinishReason.CANCELLED
    assert listener.of(third) == [Cancelled(third)]
    assert isinstance(listener.of(first)[-1], Finished)


def test_a_cancelled_load_leaves_the_next_one_alone(listener: Listener, load: Load) -> None:
    first = listener.submit(load)
    listener.until(Loading)
    second = listener.submit(load)
    listener.cancel(first)
    # the first may have been through already
    assert isinstance(listener.of(first)[-1], Cancelled | Loaded)
    of_second = listener.of(second)
    assert isinstance(of_second[-1], Loaded)
    assert all(isinstance(e, Loading) for e in of_second[:-1])
    assert not [e for e in listener.rest() if owner(e) in (first, second)]


def test_cancelling_what_has_ended_or_is_anothers_does_nothing(
    door: EngineDoor, load: Load
) -> None:
    one, other = Listener(door.client()), Listener(door.client())
    loading = one.submit(load)
    one.of(loading)
    one.cancel(loading)
    request = one.submit(QUESTION)
    other.cancel(request)
    other.cancel(12345)
    ending = one.of(request)[-1]
    assert isinstance(ending, Finished)
    assert ending.answer.finish_reason is not FinishReason.CANCELLED


def test_thinking_is_ended_at_its_limit_or_when_it_is_asked_for(
    door: EngineDoor, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = (*chat("What is a round?"), ChatMessage(Role.ASSISTANT, "", "A round"))
    if isinstance(door, FakeEngine):
        door.script.reasoning = "A round is one draft and one verify, and then the next one comes."
    one, other = Listener(door.client()), Listener(door.client())
    one.run(load)
    limited = one.run(Ask(begun, AskParams(max_tokens=80, think=True, think_budget=2)))
    assert isinstance(limited, Finished)
    assert limited.answer.thinking_end is ThinkingEnd.BUDGET
    assert limited.answer.text

    # The guide's thoughts are short: each round waits until it was asked.
    asked, round_ = threading.Event(), answering.Answering._round

    def late(self: answering.Answering) -> Event:
        asked.wait(PATIENCE)
        return round_(self)

    monkeypatch.setattr(answering.Answering, "_round", late)
    params = AskParams(max_tokens=80, block=2, think=True)
    for listener, end in ((other, None), (one, ThinkingEnd.ASKED)):
        asked.clear()
        request = one.submit(Ask(begun, params))
        waiting = one.submit(Ask(begun, params))
        one.until(Decoded)
        listener.client.answer_now(request)
        listener.client.answer_now(waiting)
        asked.set()
        ending = one.of(request)[-1]
        assert isinstance(ending, Finished)
        assert ending.answer.thinking_end is end
        ending = one.of(waiting)[-1]
        assert isinstance(ending, Finished)
        assert ending.answer.thinking_end is None, "it did not run"


def test_who_leaves_takes_his_requests_along(door: EngineDoor, load: Load) -> None:
    leaving, staying = Listener(door.client()), Listener(door.client())
    staying.run(load)
    long = Ask(QUESTION.chat, AskParams(max_tokens=400))
    for _ in range(20):
        leaving.submit(long)
    leaving.client.drain()
    leaving.client.close()
    assert isinstance(staying.run(QUESTION), Finished)
    assert leaving.client.drain() == []


def test_closing_ends_what_waits(door: EngineDoor, load: Load) -> None:
    listener = Listener(door.client())
    requests = [listener.submit(c) for c in (load, QUESTION, ListDevices(), QUESTION)]
    door.close()
    for request in requests:
        assert isinstance(listener.of(request)[-1], Ending)
    late = listener.submit(QUESTION)
    assert isinstance(listener.of(late)[-1], Finished)
    assert not [t for t in threading.enumerate() if t.name == "slipstream-engine"]
    door.close()  # a second close does nothing


def test_all_that_crosses_can_travel(
    listener: Listener,
    load: Load,
    failing: Callable[[], Load],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    read_in_parts_of(4, monkeypatch)
    monkeypatch.setattr(paths, "cache", lambda: tmp_path)  # where no probe was kept
    chat = (ChatMessage(Role.USER, "é"), ChatMessage(Role.ASSISTANT, "a", "b"))
    commands: list[Command] = [
        *(ListDevices(), load, QUESTION, Ask(chat, AskParams(stop=("x",)))),
        *(
            Measure(exact=True),
            Count(QUESTION.chat),
            Compare(QUESTION.chat, QUESTION.params, (1, 2, 3, 4), 2),
            Unload(),
        ),
    ]
    events: list[Event] = []
    for command in commands:
        events += listener.of(listener.submit(command))
    waiting = [listener.submit(c) for c in (load, Unload())]
    listener.cancel(waiting[1])
    for request in (*waiting, listener.submit(failing())):
        events += listener.of(request)
    events += listener.rest()
    assert {type(c) for c in commands} == set(get_args(Command))
    kinds = {kind for kind in get_args(Event)}
    assert {type(e) for e in events} == kinds
    for thing in (*commands, *events):
        assert repr(pickle.loads(pickle.dumps(thing))) == repr(thing)
