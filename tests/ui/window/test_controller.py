"""What is decided without any widget: what is asked, and to which turn its answer goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QElapsedTimer, QObject

from app.conversation import End
from app.engine import Figures, FinishReason, LoadParams, Script
from app.errors import OptionError
from app.library import Pair
from app.loading import LoadChoice
from app.presets import ChatOptions
from app.settings import Settings
from app.ui.bridge import EngineBridge
from app.ui.look.words import finish_note
from app.ui.meters.model import Meters
from app.ui.models.loading import Loader
from app.ui.settings.flow import SettingsFlow
from app.ui.window.controller import Controller
from tests.ui.conftest import WaitUntil
from tests.ui.fakes import BatchEngine, FakeModels

LONG = " ".join(f"word{i}" for i in range(100))


class Rig:
    """A controller over a scripted engine that works when a test drains."""

    def __init__(self, owner: QObject) -> None:
        self.engine = BatchEngine(Script(text=LONG), batch=1)
        self.models = FakeModels()
        self.bridge = EngineBridge(self.engine, owner)
        self.meters = Meters(owner)
        self.flow = SettingsFlow(Settings(), lambda _: None, owner)
        self.loader = Loader(self.bridge, self.models, owner)
        self.controller = Controller(self.bridge, self.loader, self.meters, self.flow, None, owner)
        self.bridge.model_changed.connect(self.meters.set_model)

    def drain(self, turns: int = 1) -> None:
        for _ in range(turns):
            self.bridge.drain()


@pytest.fixture
def rig(owner: QObject, wait_until: WaitUntil) -> Iterator[Rig]:
    result = Rig(owner)
    result.controller.load()
    wait_until(lambda: not result.loader.obstacle)
    result.bridge._timer.stop()
    yield result
    result.bridge.close()


def test_an_answer_made_anew_while_the_old_one_streams(rig: Rig) -> None:
    """What still comes of the old one goes to the old turn, and counts for nothing else."""
    controller = rig.controller
    controller.ask("Go")
    rig.drain(6)
    old = controller.current.last_answer
    assert old is not None
    assert old.text
    assert controller.again()
    new = controller.current.last_answer
    assert new is not None
    assert new is not old
    rig.drain(2)
    assert isinstance(old.figures, Figures)
    assert old.figures.finish_reason is FinishReason.CANCELLED
    assert old.end is End.REPLACED
    assert LONG.startswith(old.text)
    assert controller.busy  # it is the new one that runs
    assert rig.meters.counters.totals.rounds < 2
    rig.drain(100)
    assert new.text == LONG
    assert not controller.busy
    assert isinstance(new.figures, Figures)
    assert new.end is End.DONE
    assert rig.meters.counters.totals.rounds == new.figures.totals.rounds
    assert controller.current.beside(new) == (old, new)


def test_questions_wait_for_their_turn(rig: Rig) -> None:
    controller = rig.controller
    controller.ask("One")
    rig.drain(6)
    controller.ask("Two")
    controller.ask("Three")
    assert len(rig.engine.asked) == 1
    assert [live.waiting for live in controller.answers.all] == [False, True, True]
    rig.drain(300)
    assert [t.text for t in controller.current.path()] == ["One", LONG, "Two", LONG, "Three", LONG]
    assert [m.content for m in rig.engine.asked[1].chat] == ["One", LONG, "Two"]
    assert not controller.busy


def test_only_what_had_to_wait_for_something_tells_that_it_did(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow disk, on which a question is kept first, is no other answer."""
    monkeypatch.setattr(QElapsedTimer, "elapsed", lambda timer: 5_000)
    controller = rig.controller
    controller.ask("One")
    controller.ask("Two")
    rig.drain(300)
    _, first, _, second = controller.current.path()
    assert isinstance(first.figures, Figures)
    assert isinstance(second.figures, Figures)
    assert (first.figures.waited_ms, second.figures.waited_ms) == (0.0, 5_000.0)


def test_stop_ends_what_runs_and_then_what_waits(rig: Rig) -> None:
    controller = rig.controller
    for text in ("One", "Two", "Three"):
        controller.ask(text)
    rig.drain(6)
    controller.stop()
    rig.drain(6)
    _, first, _, second, _, third = controller.current.path()
    assert (first.end, second.end, third.end) == (End.STOPPED, End.COMING, End.COMING)
    assert [live.turn for live in controller.answers.all] == [second, third]
    controller.answers.set_model("")  # so that they all wait
    controller.stop()
    rig.drain(2)
    controller.stop()
    assert (second.end, third.end) == (End.STOPPED, End.STOPPED)
    assert not controller.busy


def test_another_chat_goes_on_while_one_answers(rig: Rig) -> None:
    controller = rig.controller
    controller.ask("One")
    rig.drain(6)
    first = controller.current
    controller.new_chat()
    assert not controller.busy
    controller.ask("Elsewhere")
    second = controller.current
    rig.drain(300)
    assert first.last_answer is not None
    assert (first.last_answer.text, first.last_answer.end) == (LONG, End.DONE)
    assert second.path()[-1].text == LONG
    assert controller.unseen == {first.id}
    controller.show_chat(first.id)
    assert not controller.unseen


def test_a_question_put_anew_ends_what_comes_behind_it(rig: Rig) -> None:
    controller = rig.controller
    controller.ask("One")
    controller.ask("Two")
    rig.drain(6)
    question, old, *_, waiting = controller.current.path()
    question.draft = "Uno"
    assert controller.edit(question, "Uno")
    rig.drain(300)
    assert (old.end, waiting.end) == (End.REPLACED, End.REPLACED)
    assert [t.text for t in controller.current.path()] == ["Uno", LONG]
    assert not question.draft
    assert controller.current.beside(controller.current.path()[0])[0] is question
    controller.choose(question)
    assert controller.current.path()[0] is question


def test_an_answer_that_was_stopped_is_gone_on_with(rig: Rig) -> None:
    controller = rig.controller
    controller.ask("One")
    rig.drain(6)
    controller.stop()
    rig.drain(2)
    answer = controller.current.path()[-1]
    half, figures = answer.text, answer.figures
    assert 0 < len(half) < len(LONG)
    assert isinstance(figures, Figures)
    assert controller.go_on(answer)
    assert not controller.go_on(answer)
    rig.drain(100)
    assert answer.text == LONG
    assert answer.end is End.DONE
    assert isinstance(answer.figures, Figures)
    assert answer.figures.parts == 2
    assert answer.figures.completion_tokens >= 100
    assert rig.engine.asked[1].chat[-1].content == half


def test_an_answer_that_repeated_itself_says_so_and_can_be_gone_on_with(rig: Rig) -> None:
    controller = rig.controller
    rig.engine.script.reason = FinishReason.LOOP
    controller.ask("One")
    rig.drain(100)
    answer = controller.current.path()[-1]
    assert answer.end is End.LOOPED
    assert finish_note(answer) == "Stopped: it repeated itself."
    assert controller.go_on(answer)
    rig.drain(100)
    rig.flow.change(loop_guard=False)
    assert controller.again()
    assert [a.params.loop_guard for a in rig.engine.asked] == [True, True, False]


def test_an_answer_that_ended_at_the_token_limit_is_gone_on_with(rig: Rig) -> None:
    controller = rig.controller
    rig.engine.script.reason = FinishReason.LENGTH
    controller.ask("One")
    rig.drain(100)
    answer = controller.current.path()[-1]
    assert finish_note(answer) == "Stopped at the token limit."
    rig.engine.script = Script(text=f"{LONG} and more")
    assert controller.go_on(answer)
    rig.drain(100)
    assert answer.text == f"{LONG} and more"
    assert finish_note(answer) == ""
    assert not controller.go_on(answer)


def test_drafting_from_the_chat_can_be_switched_off(rig: Rig) -> None:
    rig.controller.ask("One")
    rig.drain(100)
    rig.flow.change(lookup=False)
    assert rig.controller.again()
    assert [a.params.lookup for a in rig.engine.asked] == [True, False]


def test_a_turn_that_is_removed_comes_back(rig: Rig) -> None:
    controller = rig.controller
    for text in ("One", "Two"):
        controller.ask(text)
    rig.drain(300)
    removed: list[object] = []
    controller.removed.connect(lambda chat, gone: removed.extend((chat, gone)))
    controller.remove(controller.current.path()[0])
    assert [t.text for t in controller.current.path()] == ["Two", LONG]
    controller.restore(*removed)  # type: ignore[arg-type]
    assert [t.text for t in controller.current.path()] == ["One", LONG, "Two", LONG]


def test_an_answer_that_is_replaced_before_it_says_a_word_leaves_nothing(rig: Rig) -> None:
    controller = rig.controller
    controller.ask("One")
    rig.drain(100)
    controller.again()
    controller.again()
    assert controller.again()
    rig.drain(300)
    chat = controller.current
    assert [t.text for t in chat.beside(chat.path()[-1])] == [LONG, LONG]
    controller.ask("Two")
    controller.again()  # what was asked behind it stays
    rig.drain(300)
    assert [t.text for t in chat.path()] == ["One", LONG, "Two", LONG]


def test_an_answer_that_is_replaced_while_it_waits_leaves_nothing(rig: Rig) -> None:
    controller = rig.controller
    controller.ask("One")
    rig.drain(6)
    controller.new_chat()
    controller.ask("Two")
    assert controller.again()
    assert controller.again()
    rig.drain(300)
    chat = controller.current
    question, answer = chat.path()
    assert answer.text == LONG
    assert chat.beside(answer) == (answer,)
    assert chat.beside(question) == (question,)


def test_an_answer_is_signed_by_the_model_that_is_loaded(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    """Not by one whose load failed before the engine was asked."""

    def other(model: str, *_: object) -> Pair:
        return Pair(model, "Other model", Path("target.gguf"), Path("draft.gguf"))

    def refuse(choice: LoadChoice, pair: Pair) -> LoadParams:
        raise OptionError("It has no such device.", remedy="Choose another one.")

    def signature() -> str:
        assert rig.controller.ask("Who?")
        rig.drain(100)
        answer = rig.controller.current.last_answer
        assert answer is not None
        assert isinstance(answer.figures, Figures)
        return answer.figures.model

    failed: list[object] = []
    rig.loader.failed.connect(failed.append)
    monkeypatch.setattr(rig.models, "open", other)
    with monkeypatch.context() as patch:
        patch.setattr(LoadChoice, "params", refuse)
        rig.controller.load()
        wait_until(lambda: len(failed) == 1)
    assert signature() == "Built-in guide"
    rig.controller.load()
    wait_until(lambda: rig.loader.activity.startswith("Loading"))
    rig.drain(4)
    assert signature() == "Other model"


def test_what_waits_goes_on_with_another_model(rig: Rig, wait_until: WaitUntil) -> None:
    controller = rig.controller
    controller.ask("One")
    controller.ask("Two")
    rig.drain(6)
    controller.load()
    rig.bridge._timer.start()
    wait_until(lambda: not controller.busy)
    _, first, _, second = controller.current.path()
    assert (first.end, second.end) == (End.RELOADED, End.DONE)
    assert second.text == LONG


def test_what_comes_when_it_closes_is_known(rig: Rig) -> None:
    controller = rig.controller
    controller.ask("One")
    controller.ask("Two")
    rig.drain(6)
    controller.close()
    rig.bridge.close()
    controller.keep_what_came()
    _, first, _, second = controller.current.path()
    assert (first.end, second.end) == (End.CLOSED, End.CLOSED)
    assert first.text


def test_without_a_model_nothing_is_asked(owner: QObject) -> None:
    rig = Rig(owner)
    refused: list[str] = []
    rig.controller.refused.connect(lambda error: refused.append(error.message))
    assert not rig.controller.ask("Hello?")
    assert not rig.controller.current.turns
    question = rig.controller.current.ask("One")
    answer = rig.controller.current.answer(question)
    answer.text, answer.end, question.draft = "Half", End.STOPPED, "Uno"
    assert not rig.controller.edit(question, "Uno")
    assert not rig.controller.again(answer)
    assert not rig.controller.go_on(answer)
    assert refused == ["No model is loaded."] * 4
    assert question.draft == "Uno"
    rig.bridge.close()


def test_nothing_is_answered_anew_where_nothing_was_asked(rig: Rig) -> None:
    assert not rig.controller.again()


def test_chats_are_known_by_their_ids(rig: Rig) -> None:
    controller = rig.controller
    first = controller.current
    controller.ask("Hello?")
    rig.drain(100)
    controller.new_chat()
    second = controller.current
    assert second is not first
    controller.new_chat()
    assert controller.current is second
    controller.show_chat(first.id)
    assert controller.current is first
    assert [s.id for s in controller.book.summaries] == [first.id]


@pytest.mark.parametrize(
    ("name", "value", "loads"),
    [
        ("n_ctx", 512, 2),
        ("draft_backend", "cpu", 2),
        ("think", True, 1),
        ("top_k", 7, 1),
        ("threads", 2, 2),
        ("kv_type", "q8_0", 2),
    ],
)
def test_only_what_needs_it_loads_again(
    rig: Rig, wait_until: WaitUntil, name: str, value: object, loads: int
) -> None:
    rig.flow.change(**{name: value})
    wait_until(lambda: len(rig.models.opened) == loads)


def test_the_other_device_is_loaded_once(rig: Rig, wait_until: WaitUntil) -> None:
    assert rig.loader.model is not None
    assert rig.loader.model.backend == "gpu"
    rig.controller.choose_device("gpu")
    assert not rig.loader.activity
    rig.controller.choose_device("cpu")
    rig.controller.choose_device("cpu")
    wait_until(lambda: len(rig.models.opened) == 2)
    rig.bridge._timer.start()
    wait_until(lambda: not rig.loader.activity)
    assert len(rig.models.opened) == 2
    assert rig.loader.model.backend == "cpu"


def test_the_guide_gets_no_more_context_than_it_was_made_for(
    rig: Rig, wait_until: WaitUntil
) -> None:
    rig.flow.change(n_ctx=262_144)
    rig.bridge._timer.start()
    wait_until(lambda: len(rig.engine.loads) == 2)
    assert rig.engine.loads[-1].params.n_ctx == 32_768


def test_an_answer_may_fill_the_context(rig: Rig) -> None:
    rig.controller.ask("One")
    rig.drain(100)
    rig.flow.change(max_tokens=7)
    rig.controller.ask("Two")
    rig.drain(100)
    assert [a.params.max_tokens for a in rig.engine.asked] == [4096, 7]


def test_a_chat_has_options_of_its_own(rig: Rig) -> None:
    rig.controller.set_options(ChatOptions("Be terse.").choose("think", True))
    rig.controller.ask("One")
    rig.drain(100)
    rig.controller.new_chat()
    rig.controller.ask("Two")
    one, two = rig.engine.asked
    assert [m.content for m in one.chat] == ["Be terse.", "One"]
    assert [m.content for m in two.chat] == ["Two"]
    assert (one.params.think, two.params.think) == (True, False)
