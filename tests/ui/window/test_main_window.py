"""The window over a scripted engine: what a user does, and what is seen then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QApplication,
    QLineEdit,
    QListWidget,
    QMenu,
    QPushButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.conversation import Role, Turn
from app.drafting import Attachment, Draft
from app.engine import DeviceInfo, Figures, FinishReason, Script
from app.engine.fake import FAKE_CPU, FAKE_GPU
from app.errors import (
    ContextFullError,
    DeviceError,
    DownloadError,
    ModelFileError,
    OptionError,
    OutputError,
)
from app.job import Failure
from app.library import ModelState, ModelStatus
from app.presets import ChatOptions
from app.settings import Settings
from app.ui.chat.message import AnswerView, Question
from app.ui.chat.welcome import SUGGESTIONS, Welcome
from app.ui.look.icons import IconButton
from app.ui.look.notice import Notice
from app.ui.markdown.text_view import TextView
from app.ui.window import controller
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine, FakeModels
from tests.ui.models.shots import passport

Ask = Callable[[MainWindow, str], None]

LONG = " ".join(f"word{i}" for i in range(400))
MIXED = "Hello 👩‍👩‍👧‍👦 *there*\n\n```py\nx = 1\n```\n\n1. one\n2. two\n\n안녕하세요"


def notices(window: MainWindow) -> list[str]:
    return [n.message for n in window.findChildren(Notice) if n.isVisibleTo(window)]


def path(window: MainWindow) -> tuple[Turn, ...]:
    return window.controller.current.path()


def figures(window: MainWindow) -> Figures:
    """Of the newest answer."""
    answer = window.controller.current.last_answer
    assert answer is not None
    assert isinstance(answer.figures, Figures)
    return answer.figures


def listed(window: MainWindow) -> list[str]:
    """Rows of the list of chats."""
    return [r if isinstance(r, str) else r.title for r in window.sidebar.list.rows.rows]


def open_row(window: MainWindow, row: int) -> None:
    chats = window.sidebar.list
    chats.setCurrentIndex(chats.rows.index(row))
    QTest.keyClick(chats, Qt.Key.Key_Return)


def context(window: MainWindow) -> str:
    return window.composer._context.accessibleName()


def raising(error: Exception) -> Callable[..., None]:
    def raise_it(*_: object, **__: object) -> None:
        raise error

    return raise_it


def test_streamed_text_is_the_answer(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window(BatchEngine(Script(text=MIXED)))
    ask(window, "Hello?")
    assert path(window)[-1].text == MIXED
    assert window.chats.view.answers[0].turn.text == MIXED


def test_an_answer_is_one_view_from_the_question_to_its_end(
    open_window: OpenWindow, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Counted(AnswerView):
        def __init__(self, turn: Turn, parent: QWidget | None = None) -> None:
            made.append(turn)
            super().__init__(turn, parent)

    monkeypatch.setattr("app.ui.chat.view.AnswerView", Counted)
    window = open_window(BatchEngine(Script(text="Hello")))
    ask(window, "Hi")
    ask(window, "And again?")
    assert made == [turn for turn in path(window) if turn.role is Role.ASSISTANT]


def test_the_meters_show_the_answers_counters(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window(BatchEngine(Script(text=LONG)))
    ask(window, "Hello?")
    answer = figures(window)
    totals = window.meters.counters.totals
    assert (totals.rounds, totals.drafted) == (answer.totals.rounds, answer.totals.drafted)
    assert totals.accepted == answer.totals.accepted
    assert totals.accepted_per_round == answer.totals.accepted_per_round
    assert window.meters.counters.tokens_per_s == pytest.approx(answer.totals.tokens_per_s)
    assert window.panel.accepted.text() == f"{answer.totals.mean_accepted_length:.1f}"
    assert window.header.chip.state.text == f"DFlash on ×{answer.speedup.times:.1f}"


def test_escape_stops(open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil) -> None:
    window = open_window(BatchEngine(Script(text=LONG), batch=1))
    window.controller.ask("Go")
    wait_until(lambda: bool(window.chats.view.answers[0].turn.text))
    assert window.composer.stop.isVisible()
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Escape)
    wait_until(lambda: not window.controller.busy)
    assert figures(window).finish_reason is FinishReason.CANCELLED
    assert window.composer.send.isVisible()


def test_stop_in_the_same_event_as_send(open_window: OpenWindow, wait_until: WaitUntil) -> None:
    window = open_window(BatchEngine(Script(text=LONG)))
    window.controller.ask("Go")
    window.controller.stop()
    wait_until(lambda: not window.controller.busy)
    window.controller.ask("Again")
    wait_until(lambda: not window.controller.busy)
    assert path(window)[-1].text == LONG


def test_an_error_is_told_and_the_window_works_on(open_window: OpenWindow, ask: Ask) -> None:
    error = ContextFullError("The prompt is too long.", remedy="Start a new chat.")
    engine = BatchEngine(Script(text="fine", error=error))
    window = open_window(engine)
    ask(window, "Hello?")
    assert "The prompt is too long." in notices(window)
    engine.script = replace(engine.script, error=None)
    ask(window, "And now?")
    assert window.chats.view.answers[1].turn.text == "fine"
    assert [m.content for m in engine.asked[1].chat] == ["And now?"]


def test_a_conversation_goes_on(open_window: OpenWindow, ask: Ask) -> None:
    engine = BatchEngine(Script(text="An answer.", reasoning="A thought."))
    window = open_window(engine, think=True)
    ask(window, "One")
    ask(window, "Two")
    chat = engine.asked[1].chat
    assert [m.role for m in chat] == [Role.USER, Role.ASSISTANT, Role.USER]
    assert (chat[1].content, chat[1].reasoning) == ("An answer.", "A thought.")
    assert engine.asked[1].params.think


def test_an_answer_at_the_token_limit_offers_to_go_on(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil
) -> None:
    engine = BatchEngine(Script(text="One two", reason=FinishReason.LENGTH))
    window = open_window(engine)
    ask(window, "Count")
    button = window.chats.view.answers[0]._go_on
    assert button.isVisible()
    engine.script = Script(text="One two three")
    button.click()
    wait_until(lambda: not window.controller.busy)
    assert path(window)[-1].text == "One two three"
    assert not window.chats.view.answers[0]._go_on.isVisible()


def test_an_answer_tells_by_its_name_here_which_model_made_it(
    open_window: OpenWindow, ask: Ask
) -> None:
    window = open_window()
    assert window.loader.model is not None
    assert window.loader.model.name != "Built-in guide"  # its file calls it otherwise
    ask(window, "Hello?")
    answer = window.controller.current.last_answer
    assert answer is not None
    assert isinstance(answer.figures, Figures)
    assert answer.figures.model == "Built-in guide"


def test_again_replaces_the_last_answer(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil
) -> None:
    engine = BatchEngine(Script(text="First."))
    window = open_window(engine)
    ask(window, "One")
    engine.script = replace(engine.script, text="Second.")
    window.actions_.again.trigger()
    wait_until(lambda: not window.controller.busy)
    assert [t.text for t in path(window)] == ["One", "Second."]
    assert [a.turn.text for a in window.chats.view.answers] == ["Second."]
    assert [t.text for t in window.controller.current.beside(path(window)[-1])] == [
        "First.",
        "Second.",
    ]
    assert len(engine.asked[1].chat) == 1


def test_a_new_chat_is_empty_and_the_old_one_stays(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window()
    ask(window, "What is this?")
    window.actions_.new_chat.trigger()
    window.actions_.new_chat.trigger()
    assert listed(window) == ["Today", "What is this?"]
    assert not path(window)
    open_row(window, 1)
    assert window.controller.current.title == "What is this?"
    assert window.chats.view.answers[0].turn.text


def test_thinking_is_apart_from_the_answer(open_window: OpenWindow, ask: Ask, qtbot: QtBot) -> None:
    window = open_window(BatchEngine(Script(text="Yes.", reasoning="Let me see.")), think=True)
    ask(window, "Well?")
    answer = window.chats.view.answers[0]
    thoughts = next(v for v in answer.findChildren(TextView) if "Thinking" in v.accessibleName())
    assert not thoughts.isVisible()
    assert answer._think.text() == "thought for a moment"
    answer._think.click()
    assert thoughts.isVisible()
    assert thoughts.toPlainText() == "Let me see."
    assert answer.turn.text == "Yes."


def test_thinking_is_ended_by_a_button(open_window: OpenWindow, wait_until: WaitUntil) -> None:
    thought = " ".join(f"thought{i}" for i in range(400))
    engine = BatchEngine(Script(text="Yes.", reasoning=thought, accepted=(0,)), batch=1)
    window = open_window(engine, think=True)
    window.composer.field.setPlainText("Well?")
    window.composer.send.click()
    wait_until(lambda: bool(window.chats.view.answers))
    answer = window.chats.view.answers[0]
    assert answer._now.isHidden()
    wait_until(lambda: not answer._now.isHidden())
    answer._now.click()
    wait_until(lambda: not window.controller.busy)
    assert answer.turn.text == "Yes."
    assert thought.startswith(answer.turn.reasoning)
    assert len(answer.turn.reasoning) < len(thought)
    assert answer._now.isHidden()
    assert answer._note.text() == "Thinking was ended by you."


@pytest.mark.parametrize("send_with", ["enter", "ctrl-enter"])
def test_keys_that_send(open_window: OpenWindow, qtbot: QtBot, send_with: str) -> None:
    window = open_window(send_with=send_with)
    field = window.composer.field
    qtbot.keyClicks(field, "Hello")
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert field.toPlainText() == "Hello\n"
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert bool(path(window)) is (send_with == "enter")
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert path(window)[0].text == "Hello"


@pytest.mark.parametrize("send_with", ["enter", "ctrl-enter"])
def test_the_same_keys_send_a_question_that_is_edited(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil, send_with: str
) -> None:
    window = open_window(send_with=send_with)
    window.controller.ask("Hello")
    wait_until(lambda: not window.controller.busy and len(window.chats.view.messages) == 2)
    question = window.chats.view.messages[0]
    assert isinstance(question, Question)
    question.start_editing()
    assert question._editor is not None
    field = question._editor.field
    qtbot.keyClicks(field, " you")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert (path(window)[0].text == "Hello you") is (send_with == "enter")
    if send_with == "ctrl-enter":
        assert field.toPlainText() == "Hello you\n"
        qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
        assert path(window)[0].text == "Hello you"


def test_spaces_alone_are_not_sent(open_window: OpenWindow, qtbot: QtBot) -> None:
    window = open_window()
    qtbot.keyClicks(window.composer.field, "  ")
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Return)
    assert not path(window)
    assert not window.composer.send.isEnabled()


def test_a_long_paste_is_kept_beside_the_field(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    window = open_window()
    long = "A" * 300_000
    QGuiApplication.clipboard().setText(long)
    window.composer.field.paste()
    assert not window.composer.field.toPlainText()
    assert window.composer.chips.chips[0].name.text() == "Pasted text · 300.0k characters"
    qtbot.keyClicks(window.composer.field, "Decode this:")
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Return)
    wait_until(lambda: bool(path(window)))  # once it is counted
    assert path(window)[0].text == f"Decode this:\n\n{long}"
    assert not window.composer.chips.isVisible()


def suggestion(window: MainWindow, text: str = "What is DFlash?") -> QAbstractButton:
    return next(b for b in window.chats.view.findChildren(QAbstractButton) if b.text() == text)


def test_a_suggestion_asks(open_window: OpenWindow) -> None:
    window = open_window()
    window.header.more.setFocus()
    window.composer.field.setPlainText("A draft")
    suggestion(window).click()
    assert path(window)[0].text == "What is DFlash?"
    assert window.composer.field.toPlainText() == "A draft"
    assert window.focusWidget() is window.composer.field


def test_a_suggestion_waits_for_the_model(open_window: OpenWindow, wait_until: WaitUntil) -> None:
    models = FakeModels(held=True)
    window = open_window(models=models, wait=False)
    suggestion(window).click()
    assert window.composer.field.toPlainText() == "What is DFlash?"
    assert not path(window)
    models.let.set()
    wait_until(lambda: bool(path(window)))
    assert path(window)[0].text == "What is DFlash?"
    assert not window.composer.field.toPlainText()


def test_a_suggestion_that_is_edited_waits_for_the_user(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    models = FakeModels(held=True)
    window = open_window(models=models, wait=False)
    suggestion(window).click()
    qtbot.keyClicks(window.composer.field, " And why?")
    models.let.set()
    wait_until(lambda: not window.loader.obstacle)
    assert not path(window)
    assert window.composer.field.toPlainText() == "What is DFlash? And why?"


def test_what_cannot_be_asked_stays_in_the_field(
    open_window: OpenWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window()
    error = OptionError("Temperature 9 is out of range.", remedy="Use 0 to 5.")
    monkeypatch.setattr(controller, "Sampling", raising(error))
    qtbot.keyClicks(window.composer.field, "Hello")
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Return)
    assert window.composer.field.toPlainText() == "Hello"
    assert notices(window) == ["Temperature 9 is out of range."]
    monkeypatch.undo()
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Return)
    assert path(window)[0].text == "Hello"
    assert not window.composer.field.toPlainText()


def test_choosing_a_chat_leads_to_the_composer(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window()
    ask(window, "Hello?")
    window.controller.new_chat()
    window.sidebar.list.setFocus()
    open_row(window, 1)
    assert window.focusWidget() is window.composer.field


def test_a_new_chat_uses_no_context(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil
) -> None:
    """The answer that goes on meanwhile counts for its own chat."""
    engine = BatchEngine(Script(text=LONG), batch=1)
    window = open_window(engine)
    window.controller.ask("Go")
    wait_until(lambda: bool(path(window)[-1].text))
    first = path(window)[-1]
    window.controller.new_chat()
    engine.hurry()
    wait_until(lambda: first.figures is not None)
    assert first.text == LONG  # it went on
    assert context(window) == "Context used: 0 of 4096 tokens"
    open_row(window, 1)
    assert context(window) == f"Context used: {first.context} of 4096 tokens"
    assert first.context > 0


def test_the_use_of_context_grows_with_the_answer(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    engine = BatchEngine(Script(text=LONG), batch=1)
    window = open_window(engine)
    window.controller.ask("Go")
    wait_until(lambda: len(path(window)[-1].text) > 200)
    answer = path(window)[-1]
    assert answer.figures is None
    assert answer.context == 5 + len(answer.text.split())  # the prompt's, and a word a token
    wait_until(lambda: context(window) > "Context used: 5 of")
    engine.hurry()
    wait_until(lambda: not window.controller.busy)
    assert context(window) == f"Context used: {5 + 400} of 4096 tokens"


def test_devices_are_those_of_the_engine(open_window: OpenWindow, wait_until: WaitUntil) -> None:
    reason = "This build has no GPU backend."
    engine = BatchEngine()
    engine.device_list = (FAKE_CPU, DeviceInfo("GPU", "No GPU", "gpu", 0, 0, False, reason))
    window = open_window(engine)
    gpu = window.header.device.button("gpu")
    wait_until(lambda: gpu.toolTip() == reason)
    assert not gpu.isEnabled()
    assert gpu.accessibleDescription() == reason
    assert window.header.device.choice() == "cpu"


def test_the_other_device_loads_the_model_there(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    saved: list[Settings] = []
    models = FakeModels()
    window = open_window(models=models, save=saved.append)
    assert window.header.device.choice() == "gpu"
    wait_until(lambda: window.header.device.button("cpu").isEnabled())
    window.header.device.button("cpu").click()
    wait_until(lambda: len(models.opened) == 2 and not window.loader.obstacle)
    wait_until(lambda: bool(saved) and saved[-1].backend == "cpu")
    assert window.header.device.choice() == "cpu"


def test_a_click_on_the_device_in_use_does_nothing(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    saved: list[Settings] = []
    models = FakeModels()
    window = open_window(models=models, save=saved.append)
    gpu = window.header.device.button("gpu")
    wait_until(gpu.isEnabled)
    gpu.click()
    assert not window.loader.activity
    assert len(models.opened) == 1
    assert window.flow.current.backend == "auto"
    assert not saved
    assert gpu.isChecked()


def test_the_header_names_the_device_that_is_used(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    small = DeviceInfo("GPU1", "Small GPU", "gpu", 1 << 30, 1 << 30, True)
    engine = BatchEngine()
    engine.device_list = (FAKE_CPU, small, FAKE_GPU)
    window = open_window(engine)
    wait_until(window.header.device.button("gpu").isEnabled)
    assert window.meters.model is not None
    assert window.meters.model.device is FAKE_GPU
    assert window.header.device.button("gpu").text() == "GPU · Scripted GPU"
    # And what is loaded counts, whatever else could have been.
    window.header.set_model(replace(window.meters.model, device=small))
    assert window.header.device.button("gpu").text() == "GPU · Small GPU"


def test_the_switch_says_what_a_card_holds_and_why_it_is_not_taken(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    window = open_window()
    switch, header = window.header.device.button("gpu"), window.header
    wait_until(window.header.device.button("cpu").isEnabled)
    loaded = window.meters.model
    assert loaded is not None
    assert (switch.text(), switch.toolTip()) == ("GPU · Scripted GPU", "Scripted GPU.")
    header.set_model(replace(loaded, layers_on_device=5))
    assert switch.text() == "GPU in part · Scripted GPU"
    assert "5 of 8 layers fit there, the CPU computes the others." in switch.toolTip()
    assert switch.accessibleDescription() == switch.toolTip()
    why = "Only 1 of 8 layers fit on Scripted GPU."
    header.set_model(replace(loaded, backend="cpu", device=FAKE_CPU, fallback=why))
    assert switch.text() == "GPU · Scripted GPU"
    assert why in switch.toolTip()
    assert switch.isEnabled()
    header.set_devices((FAKE_CPU, FAKE_GPU))  # asked for again
    assert why in switch.toolTip()
    header.set_model(loaded)
    assert switch.toolTip() == "Scripted GPU."


def test_a_model_that_cannot_be_loaded_is_told(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    models = FakeModels(ModelFileError("`target.gguf` is cut short.", remedy="Convert it again."))
    window = open_window(models=models, wait=False)
    wait_until(lambda: "`target.gguf` is cut short." in notices(window))
    assert window.header.chip.state.text == "No model"
    qtbot.keyClicks(window.composer.field, "Hello")
    assert not window.composer.send.isEnabled()
    models.error = None
    retry = next(b for b in window.findChildren(QAbstractButton) if b.text() == "Try again")
    retry.click()
    wait_until(lambda: window.header.chip.state.text == "DFlash ready")
    assert window.composer.send.isEnabled()


def test_after_a_failed_load_no_device_is_in_use(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    engine = BatchEngine()
    window = open_window(engine)
    assert window.header.device.choice() == "gpu"
    engine.script.load_error = DeviceError("Out of memory.", remedy="Close other programs.")
    wait_until(window.header.device.button("cpu").isEnabled)
    window.header.device.button("cpu").click()
    wait_until(lambda: "Out of memory." in notices(window))
    assert window.header.device.choice() == ""
    assert window.panel.device.text() == "No model is loaded"
    assert window.panel.memory.text() == ""
    assert window.header.chip.state.text == "No model"
    engine.script.load_error = None
    window.header.device.button("cpu").click()  # another try on the same device
    wait_until(lambda: window.header.chip.state.text == "DFlash ready")
    assert window.header.device.choice() == "cpu"


def test_a_settings_click_looks_at_no_disk(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    """Neither models nor the settings' file are touched on the main thread."""
    threads: list[threading.Thread] = []

    class Watched(FakeModels):
        def models(self) -> tuple[ModelStatus, ...]:
            threads.append(threading.current_thread())
            return super().models()

    def save(settings: Settings) -> None:
        threads.append(threading.current_thread())

    window = open_window(models=Watched(), save=save)
    wait_until(lambda: bool(window.header.picker.popup.findChildren(QAbstractButton)))
    rows = window.header.picker.popup.findChildren(QAbstractButton)
    threads.clear()
    window.toggle_settings()
    qtbot.mouseClick(window.sheet.theme.button("light"), Qt.MouseButton.LeftButton)
    qtbot.mouseClick(window.sheet.send.button("ctrl-enter"), Qt.MouseButton.LeftButton)
    wait_until(lambda: bool(threads))
    assert threading.main_thread() not in threads
    assert len(threads) == 1  # one save, no list of models
    assert window.header.picker.popup.findChildren(QAbstractButton) == rows


def test_problems_on_the_way_are_told(open_window: OpenWindow) -> None:
    window = open_window(problems=["The setting `theme` cannot be 'pink'."])
    assert notices(window) == ["The setting `theme` cannot be 'pink'."]


def test_settings_that_cannot_be_saved_are_told(
    open_window: OpenWindow, wait_until: WaitUntil, caplog: pytest.LogCaptureFixture
) -> None:
    error = OutputError("The settings cannot be saved.", remedy="Check the disk.")
    window = open_window(save=raising(error))
    window.flow.change(think=True)
    wait_until(lambda: notices(window) == ["The settings cannot be saved."])
    window.close()  # tries once more, and says so in the log
    assert "The settings cannot be saved." in caplog.text


def test_the_picker_offers_what_there_is(open_window: OpenWindow, wait_until: WaitUntil) -> None:
    window = open_window()
    popup = window.header.picker.popup
    wait_until(lambda: len(popup.findChildren(QAbstractButton)) == 3)
    rows = popup.findChildren(QAbstractButton)
    assert all(row.isEnabled() for row in rows)
    assert rows[1].accessibleName().startswith("Get Qwen3.5-4B. The model that")
    assert "tiny demo model" in window.header.picker.text()


def test_what_was_not_finished_is_told_at_the_start(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    models = FakeModels()
    failure = Failure("The network was gone.", "Try again.", "retry")
    models.more = (ModelStatus("going", "A model", ModelState.UNFINISHED, "…", failure=failure),)
    window = open_window(models=models)
    wait_until(lambda: "A model is not finished yet." in notices(window))
    window.getting.failed.emit(DownloadError("The network is gone.", remedy="Try again."))
    assert notices(window) == ["The network is gone."]
    window.getting.model, window.getting.title = "going", "A model"
    window.getting.changed.emit()
    assert notices(window) == []
    assert window.header.picker.text() == "Built-in guide · getting A model 0%"


def test_links_show_their_address_first(
    open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(
        "app.ui.look.notice.QDesktopServices.openUrl", lambda url: opened.append(url.toString())
    )
    window = open_window()
    window.chats.view.link_chosen.emit("https://example.org/a?b=c")
    assert notices(window) == ["Open https://example.org/a?b=c in the browser?"]
    assert not opened
    next(b for b in window.findChildren(QAbstractButton) if b.text() == "Open the link").click()
    assert opened == ["https://example.org/a?b=c"]
    for address in ("file:///etc/passwd", "javascript:alert(1)", "ftp://x.y"):
        window.chats.view.link_chosen.emit(address)
        assert notices(window)[-1] == f"Only web and mail links are opened, not {address}"
    assert len(opened) == 1


def test_every_control_has_a_name(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window(BatchEngine(Script(text=MIXED, reasoning="hm")), think=True)
    ask(window, "Hello?")
    window.toggle_settings()
    controls = (QAbstractButton, QLineEdit, QAbstractScrollArea, QListWidget)
    nameless = [
        widget
        for widget in window.findChildren(QWidget)
        if isinstance(widget, controls)
        and not widget.accessibleName()
        and not (isinstance(widget, QAbstractButton) and widget.text())
    ]
    assert not nameless
    icons_alone = [b for b in window.findChildren(IconButton) if not b.toolTip()]
    assert not icons_alone


def leaves(menu: QMenu) -> list[QAction]:
    """The actions of a menu and of those in it, without what parts them."""
    result: list[QAction] = []
    for action in menu.actions():
        below = action.menu()
        if isinstance(below, QMenu):
            result += leaves(below)
        elif not action.isSeparator():
            result.append(action)
    return result


def test_every_action_is_in_the_menu_and_keys_are_unique(open_window: OpenWindow) -> None:
    window = open_window()
    in_menu = leaves(window.actions_.menu)
    assert len(in_menu) == len(set(in_menu))
    assert set(window.actions()) == set(in_menu)
    keys = [s.toString() for a in in_menu for s in a.shortcuts() if not s.isEmpty()]
    assert len(keys) == len(set(keys))
    assert QKeySequence("Ctrl+N").toString() in keys


def test_panels_fold_and_a_narrow_window_keeps_one_line(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil
) -> None:
    saved: list[Settings] = []
    window = open_window(save=saved.append)
    window.resize(1300, 800)
    assert window.panel.isVisible()
    assert window.sidebar.isVisible()
    window.actions_.sidebar.trigger()
    assert not window.sidebar.isVisible()
    wait_until(lambda: bool(saved) and not saved[-1].show_sidebar)
    ask(window, "Hello?")
    window.resize(700, 600)
    assert not window.panel.isVisible()
    assert window.status_line.isVisible()
    assert "per round" in window.status_line.button.text()
    window.status_line.button.click()
    assert window.panel.isVisible()  # over the conversation
    window.actions_.meters.trigger()
    assert not window.panel.isVisible()
    assert saved[-1].show_meters


def test_it_stays_at_the_bottom_only_where_it_was(
    open_window: OpenWindow, ask: Ask, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    text = "\n\n".join(f"Paragraph {i}." for i in range(60))
    window = open_window(BatchEngine(Script(text=text), batch=30))
    ask(window, "Long?")
    bar = window.chats.view.verticalScrollBar()
    wait_until(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    window.controller.ask("More?")
    bar.setValue(0)
    wait_until(lambda: not window.controller.busy)
    qtbot.wait(50)
    assert bar.value() == 0
    assert window.chats.view._down.isVisible()
    window.chats.view._down.click()
    assert bar.value() == bar.maximum()


@pytest.mark.parametrize("when", ["loading", "streaming", "idle"])
def test_closing_while_busy(open_window: OpenWindow, when: str, wait_until: WaitUntil) -> None:
    engine = BatchEngine(Script(text=LONG), batch=1)
    window = open_window(engine, wait=when != "loading")
    if when == "streaming":
        window.controller.ask("Go")
        wait_until(lambda: bool(window.chats.view.answers[0].turn.text))
    start = time.monotonic()
    window.close()
    assert time.monotonic() - start < 5
    assert engine.closed
    assert not window.isVisible()


def test_copy_takes_the_source(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window(BatchEngine(Script(text=MIXED)))
    ask(window, "Hello?")
    window.actions_.copy_answer.trigger()
    assert QGuiApplication.clipboard().text() == MIXED


def test_an_empty_chat_offers_the_real_model(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    """As long as the guide is in use; what is here already only has to be chosen."""
    models = FakeModels()
    window = open_window(models=models)
    welcome = window.chats.view.findChild(Welcome)
    wait_until(welcome._get.isVisible)
    assert welcome._get.text() == "Get Qwen3.5-4B"
    welcome._get.click()
    assert window.sides.sheet is window.models_sheet
    window.getting.model = "qwen3.5-4b"
    window.getting.changed.emit()
    assert welcome._get.text() == "See how far it is"
    window.getting.model = ""
    window.getting.changed.emit()
    here = replace(models.models()[1], state=ModelState.READY)
    window.model_list._take((models.models()[0], here))
    assert welcome._get.text() == "Use Qwen3.5-4B"
    welcome._get.click()
    assert window.flow.current.model == "qwen3.5-4b"
    assert not welcome._get.isVisible()


def test_the_focus_goes_on_from_an_offer_or_a_suggestion_to_the_composer(
    open_window: OpenWindow, wait_until: WaitUntil, qtbot: QtBot
) -> None:
    """It went to the first button of the window."""
    models = FakeModels()
    window = open_window(models=models)
    welcome, field = window.chats.view.findChild(Welcome), window.composer.field
    wait_until(welcome._get.isVisible)
    welcome._get.setFocus()
    window.model_list._take(models.models()[:1])
    assert not welcome._get.isVisible()
    assert QApplication.focusWidget() is field
    chip = next(b for b in welcome.findChildren(QPushButton) if b.text() == SUGGESTIONS[0])
    chip.setFocus()
    qtbot.keyClick(chip, Qt.Key.Key_Space)
    wait_until(lambda: not welcome.isVisible())
    assert QApplication.focusWidget() is field


def test_the_meters_are_those_of_the_chat_on_view(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil
) -> None:
    """Live while its answer comes, as it was in a chat that is looked at later."""
    engine = BatchEngine(Script(text="one two three four five six"), batch=1)
    window = open_window(engine)
    ask(window, "First")
    first, few = window.controller.current.id, figures(window).totals
    assert window.panel.strip.isVisible()
    window.controller.new_chat()
    assert not window.meters.counters.totals.rounds
    assert not window.panel.details.isVisible()
    engine.script.text = LONG
    window.controller.ask("Second")
    second = window.controller.current.id
    wait_until(lambda: window.meters.counters.totals.rounds > 2)
    window.controller.show_chat(first)
    wait_until(lambda: window.controller.current.id == first)
    assert window.meters.counters.totals == few
    assert not window.panel.strip.isVisible()
    assert window.panel.accepted.text() == f"{few.mean_accepted_length:.1f}"
    window.controller.show_chat(second)
    wait_until(lambda: window.controller.current.id == second)
    assert window.meters.counters.totals.rounds > 2
    assert window.panel.strip.isVisible()
    engine.hurry()
    wait_until(lambda: not window.controller.busy)
    assert window.meters.counters.totals == figures(window).totals


def test_long_lines_of_code_are_wrapped_or_scrolled_to(
    open_window: OpenWindow, ask: Callable[[MainWindow, str], None], wait_until: WaitUntil
) -> None:
    saved: list[Settings] = []
    text = "Some prose.\n\n```py\n" + "x = [" + "1, " * 400 + "]\n```\n\nMore prose."
    window = open_window(BatchEngine(Script(text=text), batch=100), save=saved.append)
    ask(window, "Go")
    body = window.chats.view.answers[0].body
    bar, wrapped = body.horizontalScrollBar(), body.height()
    assert not bar.maximum()
    (button,) = [b for b in body.findChildren(IconButton) if b.toolTip() == "Scroll long lines"]
    button.click()
    wait_until(lambda: body.height() < wrapped - 100 and bar.maximum() > 500)
    assert button.accessibleName() == "Wrap long lines"
    wait_until(lambda: bool(saved) and not saved[-1].wrap_code)
    ask(window, "Again")  # code that comes now too
    assert window.chats.view.answers[-1].body.horizontalScrollBar().maximum() > 500
    button.click()
    wait_until(lambda: not bar.maximum() and body.height() == wrapped)
    assert body.document().toPlainText().startswith("Some prose.\nx = [1, 1, ")


class _Shown(QObject):
    """The windows that are shown, by their class."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self.names.append(f"{type(watched).__name__}: {watched.accessibleName()}")
        return False


def test_no_part_is_a_window_of_its_own_before_it_has_its_place(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil, tmp_path: Path
) -> None:
    """Each such one was seen for a moment, and took the focus from where it was."""
    engine = BatchEngine(Script(text="An `answer`.\n\n```\ncode\n```", reasoning="Hm.", block=16))
    models = FakeModels()
    models.more = (
        ModelStatus("mine", "Mine", ModelState.READY, path=tmp_path, passport=passport()),
        ModelStatus("gone", "Gone", ModelState.BROKEN, "It is not there.", tmp_path),
        ModelStatus("own", "Own", ModelState.UNFINISHED, failure=Failure("No room.", "Wait.")),
    )
    shown = _Shown()
    QApplication.instance().installEventFilter(shown)  # type: ignore[union-attr]
    window = open_window(engine, models)
    assert shown.names == ["MainWindow: "]
    ask(window, Draft("Why?", (Attachment("a.txt", "Text."),)).message())
    window.chats.view.messages[0].start_editing()
    window.chats.view.messages[0].stop_editing()
    window.chats.view.answers[0]._why.click()
    window.controller.edit(window.controller.current.path()[0], "Why not?")
    wait_until(lambda: not window.controller.busy)
    engine.script.error = ContextFullError("It is too long.", remedy="Shorten it.")
    ask(window, "More?")
    window.show_models()
    wait_until(lambda: {"mine", "gone"} <= window.models_sheet.rows.keys())
    window.models_sheet.rows["mine"].toggle_passport()
    window.models_sheet.say("Verified.")
    window.actions_.settings.trigger()
    window.actions_.chat_options.trigger()
    window.chat_sheet.show_presets({"Terse": ChatOptions("Be terse.")})
    for action in window.actions_.help.values():
        action.trigger()
    window.actions_.find.trigger()
    window.composer.attach(Attachment("b.txt", "Text."))
    window.composer.set_warning("It is too long.")
    window.proving._open()
    assert shown.names == ["MainWindow: "]
    QApplication.instance().removeEventFilter(shown)  # type: ignore[union-attr]
