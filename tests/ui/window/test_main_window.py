"""The window over a scripted engine: what a user does, and what is seen then."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QLineEdit,
    QListWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.conversation import Role
from app.engine import DeviceInfo, FinishReason, Script
from app.engine.fake import FAKE_CPU
from app.errors import ContextFullError, ModelFileError
from app.settings import Settings
from app.ui.look.icons import IconButton
from app.ui.look.notice import Notice
from app.ui.markdown.text_view import TextView
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow
from tests.ui.fakes import BatchEngine, FakeModels

Ask = Callable[[MainWindow, str], None]

LONG = " ".join(f"word{i}" for i in range(400))
MIXED = "Hello 👩‍👩‍👧‍👦 *there*\n\n```py\nx = 1\n```\n\n1. one\n2. two\n\n안녕하세요"


def notices(window: MainWindow) -> list[str]:
    return [n.message for n in window.findChildren(Notice) if n.isVisibleTo(window)]


def test_streamed_text_is_the_answer(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window(BatchEngine(Script(text=MIXED)))
    ask(window, "Hello?")
    answer = window.conversation.exchanges[0].answer
    assert answer is not None
    assert answer.text == MIXED
    assert window.view.answers[0].text == MIXED
    assert window.conversation.exchanges[0].text == MIXED


def test_the_meters_show_the_answers_counters(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window(BatchEngine(Script(text=LONG)))
    ask(window, "Hello?")
    answer = window.conversation.exchanges[0].answer
    assert answer is not None
    totals = window.meters.model.totals
    assert (totals.rounds, totals.drafted) == (answer.totals.rounds, answer.totals.drafted)
    assert totals.accepted == answer.totals.accepted
    assert totals.accepted_per_round == answer.totals.accepted_per_round
    assert window.meters.model.tokens_per_s == pytest.approx(answer.totals.tokens_per_s)
    assert window.meters.accepted.text() == f"{answer.totals.mean_accepted_length:.1f}"
    assert window.header.chip.state.text == f"DFlash on ×{answer.speedup:.1f}"


def test_escape_stops(open_window: OpenWindow, qtbot: QtBot) -> None:
    window = open_window(BatchEngine(Script(text=LONG), batch=1))
    window.send("Go")
    qtbot.waitUntil(lambda: bool(window.view.answers[0].text))
    assert window.composer.stop.isVisible()
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.answering.busy, timeout=1000)
    exchange = window.conversation.exchanges[0]
    assert exchange.answer is not None
    assert exchange.answer.finish_reason is FinishReason.CANCELLED
    assert exchange.text == exchange.answer.text == window.view.answers[0].text
    assert window.composer.send.isVisible()


def test_stop_in_the_same_event_as_send(open_window: OpenWindow, qtbot: QtBot) -> None:
    window = open_window(BatchEngine(Script(text=LONG)))
    window.send("Go")
    window.answering.stop()
    qtbot.waitUntil(lambda: not window.answering.busy, timeout=1000)
    window.send("Again")
    qtbot.waitUntil(lambda: not window.answering.busy, timeout=5000)
    assert window.conversation.exchanges[1].text == LONG


def test_an_error_is_told_and_the_window_works_on(open_window: OpenWindow, ask: Ask) -> None:
    error = ContextFullError("The prompt is too long.", remedy="Start a new chat.")
    engine = BatchEngine(Script(text="fine", error=error))
    window = open_window(engine)
    ask(window, "Hello?")
    assert "The prompt is too long." in notices(window)
    engine.script = replace(engine.script, error=None)
    ask(window, "And now?")
    assert window.view.answers[1].text == "fine"
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


def test_again_replaces_the_last_answer(open_window: OpenWindow, ask: Ask, qtbot: QtBot) -> None:
    engine = BatchEngine(Script(text="First."))
    window = open_window(engine)
    ask(window, "One")
    engine.script = replace(engine.script, text="Second.")
    window.actions_.again.trigger()
    qtbot.waitUntil(lambda: not window.answering.busy)
    assert [e.text for e in window.conversation.exchanges] == ["Second."]
    assert [a.text for a in window.view.answers] == ["Second."]
    assert len(engine.asked[1].chat) == 1


def test_a_new_chat_is_empty_and_the_old_one_stays(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window()
    ask(window, "What is this?")
    window.actions_.new_chat.trigger()
    window.actions_.new_chat.trigger()
    assert window.sidebar.list.count() == 2
    assert not window.conversation.exchanges
    window.sidebar.list.setCurrentRow(0)
    assert window.conversation.title == "What is this?"
    assert window.view.answers[0].text


def test_a_new_chat_stops_what_runs(open_window: OpenWindow, qtbot: QtBot) -> None:
    window = open_window(BatchEngine(Script(text=LONG), batch=1))
    window.send("Go")
    qtbot.waitUntil(lambda: bool(window.view.answers[0].text))
    window.new_chat()
    qtbot.waitUntil(lambda: not window.answering.busy, timeout=1000)
    first = window._conversations[0].exchanges[0]
    assert first.answer is not None
    assert first.text == first.answer.text


def test_thinking_is_apart_from_the_answer(open_window: OpenWindow, ask: Ask, qtbot: QtBot) -> None:
    window = open_window(BatchEngine(Script(text="Yes.", reasoning="Let me see.")), think=True)
    ask(window, "Well?")
    answer = window.view.answers[0]
    thoughts = next(v for v in answer.findChildren(TextView) if "Thinking" in v.accessibleName())
    assert not thoughts.isVisible()
    assert answer._think.text() == "thought for a moment"
    answer._think.click()
    assert thoughts.isVisible()
    assert thoughts.toPlainText() == "Let me see."
    assert answer.text == "Yes."


@pytest.mark.parametrize("send_with", ["enter", "ctrl-enter"])
def test_keys_that_send(open_window: OpenWindow, qtbot: QtBot, send_with: str) -> None:
    window = open_window(send_with=send_with)
    field = window.composer.field
    qtbot.keyClicks(field, "Hello")
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert field.toPlainText() == "Hello\n"
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert bool(window.conversation.exchanges) is (send_with == "enter")
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert window.conversation.exchanges[0].question == "Hello"


def test_spaces_alone_are_not_sent(open_window: OpenWindow, qtbot: QtBot) -> None:
    window = open_window()
    qtbot.keyClicks(window.composer.field, "  ")
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Return)
    assert not window.conversation.exchanges
    assert not window.composer.send.isEnabled()


def test_a_long_paste_is_kept_beside_the_field(open_window: OpenWindow, qtbot: QtBot) -> None:
    window = open_window()
    long = "A" * 300_000
    QGuiApplication.clipboard().setText(long)
    window.composer.field.paste()
    assert not window.composer.field.toPlainText()
    assert window.composer._pastes.text() == "Pasted text · 300.0k characters"
    qtbot.keyClicks(window.composer.field, "Decode this:")
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Return)
    assert window.conversation.exchanges[0].question == f"Decode this:\n\n{long}"
    assert not window.composer._pastes.isVisible()


def test_a_suggestion_asks(open_window: OpenWindow, qtbot: QtBot) -> None:
    window = open_window()
    button = next(
        b for b in window.view.findChildren(QAbstractButton) if b.text() == "What is DFlash?"
    )
    button.click()
    assert window.conversation.exchanges[0].question == "What is DFlash?"


def test_devices_are_those_of_the_engine(open_window: OpenWindow, qtbot: QtBot) -> None:
    reason = "This build has no GPU backend."
    engine = BatchEngine()
    engine.device_list = (FAKE_CPU, DeviceInfo("GPU", "No GPU", "gpu", 0, 0, False, reason))
    window = open_window(engine)
    gpu = window.header.device.button("gpu")
    qtbot.waitUntil(lambda: gpu.toolTip() == reason)
    assert not gpu.isEnabled()
    assert gpu.accessibleDescription() == reason
    assert window.header.device.choice() == "cpu"


def test_the_other_device_loads_the_model_there(open_window: OpenWindow, qtbot: QtBot) -> None:
    saved: list[Settings] = []
    models = FakeModels()
    window = open_window(models=models, save=saved.append)
    assert window.header.device.choice() == "gpu"
    qtbot.waitUntil(lambda: window.header.device.button("cpu").isEnabled())
    window.header.device.button("cpu").click()
    qtbot.waitUntil(lambda: len(models.opened) == 2 and not window._activity)
    assert saved[-1].backend == "cpu"
    assert window.header.device.choice() == "cpu"


def test_a_model_that_cannot_be_loaded_is_told(open_window: OpenWindow, qtbot: QtBot) -> None:
    models = FakeModels(ModelFileError("`target.gguf` is cut short.", remedy="Convert it again."))
    window = open_window(models=models, wait=False)
    qtbot.waitUntil(lambda: "`target.gguf` is cut short." in notices(window))
    assert window.header.chip.state.text == "No model"
    qtbot.keyClicks(window.composer.field, "Hello")
    assert not window.composer.send.isEnabled()
    models.error = None
    retry = next(b for b in window.findChildren(QAbstractButton) if b.text() == "Try again")
    retry.click()
    qtbot.waitUntil(lambda: window.header.chip.state.text == "DFlash ready")
    assert window.composer.send.isEnabled()


def test_the_picker_offers_what_there_is(open_window: OpenWindow) -> None:
    window = open_window()
    rows = window.header.picker.popup.findChildren(QAbstractButton)
    assert [r.isEnabled() for r in rows] == [True, False]
    assert rows[1].accessibleName().startswith("Get Qwen3.5-4B. One click will download")
    assert "tiny demo model" in window.header.picker.text()


def test_links_show_their_address_first(
    open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(
        "app.ui.look.notice.QDesktopServices.openUrl", lambda url: opened.append(url.toString())
    )
    window = open_window()
    window.view.link_chosen.emit("https://example.org/a?b=c")
    assert notices(window) == ["Open https://example.org/a?b=c in the browser?"]
    assert not opened
    next(b for b in window.findChildren(QAbstractButton) if b.text() == "Open the link").click()
    assert opened == ["https://example.org/a?b=c"]
    for address in ("file:///etc/passwd", "javascript:alert(1)", "ftp://x.y"):
        window.view.link_chosen.emit(address)
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


def test_every_action_is_in_the_menu_and_keys_are_unique(open_window: OpenWindow) -> None:
    window = open_window()
    in_menu = [a for a in window.actions_.menu.actions() if not a.isSeparator()]
    assert set(window.actions()) == set(in_menu)
    keys = [s.toString() for a in in_menu for s in a.shortcuts() if not s.isEmpty()]
    assert len(keys) == len(set(keys))
    assert QKeySequence("Ctrl+N").toString() in keys


def test_panels_fold_and_a_narrow_window_keeps_one_line(
    open_window: OpenWindow, ask: Ask, qtbot: QtBot
) -> None:
    saved: list[Settings] = []
    window = open_window(save=saved.append)
    window.resize(1300, 800)
    assert window.meters.isVisible()
    assert window.sidebar.isVisible()
    window.actions_.sidebar.trigger()
    assert not window.sidebar.isVisible()
    assert not saved[-1].show_sidebar
    ask(window, "Hello?")
    window.resize(700, 600)
    assert not window.meters.isVisible()
    assert window.line.isVisible()
    assert "per round" in window.line.text()
    window.actions_.meters.trigger()
    assert not window.line.isVisible()


def test_it_stays_at_the_bottom_only_where_it_was(
    open_window: OpenWindow, ask: Ask, qtbot: QtBot
) -> None:
    text = "\n\n".join(f"Paragraph {i}." for i in range(60))
    window = open_window(BatchEngine(Script(text=text), batch=30))
    ask(window, "Long?")
    bar = window.view.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    window.send("More?")
    bar.setValue(0)
    qtbot.waitUntil(lambda: not window.answering.busy)
    qtbot.wait(50)
    assert bar.value() == 0
    assert window.view._down.isVisible()
    window.view._down.click()
    assert bar.value() == bar.maximum()


@pytest.mark.parametrize("when", ["loading", "streaming", "idle"])
def test_closing_while_busy(open_window: OpenWindow, qtbot: QtBot, when: str) -> None:
    engine = BatchEngine(Script(text=LONG), batch=1)
    window = open_window(engine, wait=when != "loading")
    if when == "streaming":
        window.send("Go")
        qtbot.waitUntil(lambda: bool(window.view.answers[0].text))
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
