"""Keys: they press what has the focus, the focus is seen, and text lands in the composer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QScrollArea, QScrollBar, QWidget
from pytestqt.qtbot import QtBot

from app.engine import Script
from app.library import ModelState, ModelStatus
from app.presets import ChatOptions
from app.ui.chat import composer
from app.ui.chat.message import AnswerView, Question
from app.ui.markdown.text_view import TextView
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine, FakeModels

Ask = Callable[[MainWindow, str], None]

KEYS = [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_presses_a_suggestion(
    open_window: OpenWindow, wait_until: WaitUntil, key: Qt.Key
) -> None:
    window = open_window()
    button = next(
        b for b in window.chats.view.findChildren(QAbstractButton) if "DFlash" in b.text()
    )
    button.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(button, key)
    wait_until(lambda: bool(window.controller.current.path()))
    assert window.controller.current.path()[0].text == "What is DFlash?"


@pytest.mark.parametrize("key", KEYS)
def test_a_key_presses_a_button_of_the_header(
    open_window: OpenWindow, wait_until: WaitUntil, key: Qt.Key
) -> None:
    window = open_window()
    window.header.settings.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(window.header.settings, key)
    wait_until(window.sheet.isVisible)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_chooses_in_a_sheet(
    open_window: OpenWindow, wait_until: WaitUntil, key: Qt.Key
) -> None:
    window = open_window()
    window.toggle_settings()
    button = window.sheet.send.button("ctrl-enter")
    button.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(button, key)
    wait_until(lambda: window.flow.current.send_with == "ctrl-enter")


def test_a_click_leaves_the_focus_in_the_composer(open_window: OpenWindow, qtbot: QtBot) -> None:
    window = open_window()
    window.composer.field.setFocus()
    for button in (window.header.meters, window.header.new_chat, window.composer._think):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        assert window.focusWidget() is window.composer.field


def test_text_typed_anywhere_lands_in_the_composer(
    open_window: OpenWindow, ask: Ask, qtbot: QtBot
) -> None:
    window = open_window(BatchEngine(Script(text="Some text.")))
    ask(window, "Hello?")
    answer = window.chats.view.answers[0]._body
    for place in (answer, window.header.settings, window.composer._think):
        window.composer.clear()
        place.setFocus(Qt.FocusReason.TabFocusReason)
        for letter in "Hey!":
            QTest.keyClick(QApplication.focusWidget() or window, letter)
        assert window.composer.field.toPlainText() == "Hey!"
        assert window.focusWidget() is window.composer.field


def test_a_shortcut_is_no_text(open_window: OpenWindow) -> None:
    window = open_window()
    window.header.settings.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(window.header.settings, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(window.header.settings, Qt.Key.Key_F9)
    assert not window.composer.field.toPlainText()


def around(widget: QWidget, window: MainWindow) -> bytes:
    """What is painted where it is, and a little around it: a field's frame is its parent's."""
    place = widget.rect().translated(widget.mapTo(window, QPoint(0, 0)))
    image = window.grab(place.adjusted(-16, -16, 16, 60)).toImage()
    return bytes(image.constBits())


@pytest.mark.parametrize("sheet", [False, True])
def test_the_focus_is_seen_wherever_tab_leads(
    open_window: OpenWindow, ask: Ask, sheet: bool
) -> None:
    window = open_window(BatchEngine(Script(text="Some text.", reasoning="hm")), think=True)
    ask(window, "Hello?")
    if sheet:
        window.toggle_settings()
    QApplication.setCursorFlashTime(0)  # the caret is always there
    window.composer.field.setFocus()
    seen: list[QWidget] = []
    while len(seen) < 100:
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        stop = window.focusWidget()
        assert stop is not None
        if stop in seen:
            break
        seen.append(stop)
    assert len(seen) > 8
    assert window.composer.field in seen
    invisible = []
    for stop in seen:
        if not stop.isVisible() or stop.visibleRegion().isEmpty():
            continue  # scrolled out of what is seen
        stop.setFocus(Qt.FocusReason.TabFocusReason)
        QApplication.processEvents()
        with_focus = around(stop, window)
        stop.clearFocus()
        QApplication.processEvents()
        if around(stop, window) == with_focus:
            invisible.append(f"{type(stop).__name__} {stop.accessibleName()!r}")
    assert not invisible


def test_enter_does_not_send_what_is_being_composed(
    open_window: OpenWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input methods take Enter to choose; some hand it on as well."""
    monkeypatch.setattr(composer, "_SAME_KEY_MS", 60_000)  # a busy machine is slower than a hand
    window = open_window()
    field = window.composer.field
    field.setFocus()
    QApplication.sendEvent(field, QInputMethodEvent("nihao", []))
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert not window.controller.current.path()
    chosen = QInputMethodEvent("", [])
    chosen.setCommitString("你好")
    QApplication.sendEvent(field, chosen)
    assert field.toPlainText() == "你好"
    QTest.keyClick(field, Qt.Key.Key_Return)  # at once: it is the one that chose
    assert not window.controller.current.path()
    monkeypatch.setattr(composer, "_SAME_KEY_MS", 10)
    qtbot.wait(20)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert window.controller.current.path()[0].text == "你好"


@pytest.mark.parametrize(("key", "command"), [("Q", "quit"), ("N", "new_chat"), ("B", "sidebar")])
def test_a_key_does_its_action_once(
    open_window: OpenWindow, wait_until: WaitUntil, key: str, command: str
) -> None:
    window = open_window()
    action = getattr(window.actions_, command)
    done: list[None] = []
    action.triggered.disconnect()
    action.triggered.connect(lambda: done.append(None))
    for place in (window.composer.field, window.header.settings):
        place.setFocus(Qt.FocusReason.TabFocusReason)
        wait_until(place.hasFocus)
        QTest.keyClick(place, getattr(Qt.Key, f"Key_{key}"), Qt.KeyboardModifier.ControlModifier)
    assert len(done) == 2


def test_right_to_left_goes_by_the_paragraph(open_window: OpenWindow) -> None:
    window = open_window()
    field = window.composer.field
    field.setPlainText("Hello\nשלום עולם\nمرحبا")
    QApplication.processEvents()
    directions = []
    block = field.document().firstBlock()
    while block.isValid():
        directions.append(block.textDirection())
        block = block.next()
    right = Qt.LayoutDirection.RightToLeft
    assert directions == [Qt.LayoutDirection.LeftToRight, right, right]
    lines = [field.document().findBlockByNumber(i).layout().lineAt(0) for i in range(3)]
    start = [line.naturalTextRect().left() for line in lines]
    assert start[0] < 10
    assert start[1] > field.viewport().width() / 2  # they begin at the right
    assert start[2] > field.viewport().width() / 2


@pytest.mark.parametrize("pressed", ["again", "other", "delete", "delete question", "ask", "leave"])
def test_keys_go_to_the_composer_when_the_message_that_had_them_goes(
    open_window: OpenWindow, ask: Ask, qtbot: QtBot, wait_until: WaitUntil, pressed: str
) -> None:
    """Qt would take the next that it finds, far away, and the next key would press that."""
    window = open_window(BatchEngine(Script(text="fine")))
    for text in ("One", "Two"):
        ask(window, text)
    window.controller.again()
    wait_until(lambda: not window.controller.busy and len(window.chats.view.messages) == 4)
    question, answer = window.chats.view.messages[-2:]
    assert isinstance(question, Question)
    assert isinstance(answer, AnswerView)
    wait_until(answer._again.isVisible)
    if pressed in ("ask", "leave"):
        question.start_editing()
    button = {
        "again": lambda: answer._again,
        "other": lambda: answer._branches._back,
        "delete": lambda: answer._delete,
        "delete question": lambda: question._delete,
        "ask": lambda: question._editor and question._editor._send,
        "leave": lambda: question._editor and question._editor._cancel,
    }[pressed]()
    assert button is not None
    button.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(button, Qt.Key.Key_Space)
    assert window.composer.field.hasFocus()
    wait_until(lambda: not window.controller.busy)
    assert window.composer.field.hasFocus()


def test_keys_go_on_where_a_button_was(
    open_window: OpenWindow, ask: Callable[[MainWindow, str], None], wait_until: WaitUntil
) -> None:
    """It goes with what it did: a message, a proof, a row of the models."""
    window = open_window()
    ask(window, "Why?")
    undo = window.notices.add("The chat is deleted.").add_button("Undo")
    undo.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(undo, Qt.Key.Key_Space)
    assert window.composer.field.hasFocus()

    window.actions_.prove.trigger()
    page = window.proof_page
    wait_until(lambda: not page.busy)
    page.again_button.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(page.again_button, Qt.Key.Key_Space)
    assert page.stop_button.hasFocus()
    wait_until(lambda: not page.busy)
    assert page.again_button.hasFocus()
    window.proving.leave()
    assert window.composer.field.hasFocus()

    models = window._models
    assert isinstance(models, FakeModels)
    models.more = (ModelStatus("mine", "Mine", ModelState.READY, path=Path("/models/mine")),)
    window.show_models()
    sheet = window.models_sheet
    wait_until(lambda: "mine" in sheet.rows)
    use = sheet.rows["mine"].main
    use.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(use, Qt.Key.Key_Space)
    wait_until(lambda: window.loader.in_use == "mine" and not window.loader.obstacle)
    assert sheet.rows["mine"].more.hasFocus()  # it is in use: its first button does nothing


def test_page_keys_scroll_the_chat(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window(BatchEngine(Script(text="Some text.\n\n" * 200), batch=100))
    ask(window, "Hello?")
    view, field = window.chats.view, window.composer.field
    bar = view.verticalScrollBar()
    for text in ("", "What\nis\nthis?"):  # as long as the field shows it whole
        field.setPlainText(text)
        assert scrolls(field, bar)
    field.setPlainText("\n" * 20)
    assert not scrolls(field, bar)
    field.clear()
    window.finder.start(view, window.controller.current.path())
    for place in (view.answers[0].body, window.finder.field):
        assert scrolls(place, bar)


def scrolls(place: QWidget, bar: QScrollBar) -> bool:
    """Whether the page keys scroll the chat up and down again, where `place` has the focus."""
    place.setFocus()
    values = []
    for key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
        QTest.keyClick(QApplication.focusWidget() or place, key)
        values.append(bar.value())
    return bar.maximum() > values[0] > values[1] < values[2]


def test_a_caret_that_is_moved_is_seen(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil
) -> None:
    window = open_window(BatchEngine(Script(text="Some text.\n\n" * 200), batch=100))
    ask(window, "line\n" * 40 + "line")
    view = window.chats.view

    def seen(text: TextView) -> bool:
        place = text.mapTo(view.viewport(), text.cursorRect().center())
        shown = text.visibleRegion().contains(text.cursorRect().center())
        return shown and view.viewport().rect().contains(place)

    body = view.answers[0].body
    body.setFocus()
    for _ in range(2):  # it may stand there already
        view.go_down()
        QTest.keyClick(body, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
        assert seen(body)
    for key, times in ((Qt.Key.Key_Down, 60), (Qt.Key.Key_Up, 30)):
        for _ in range(times):
            QTest.keyClick(body, key, Qt.KeyboardModifier.ShiftModifier)
            assert seen(body)
    assert body.textCursor().selectedText()
    question = view.reveal(window.controller.current.path()[0])
    assert isinstance(question, Question)
    wait_until(question._fold.isVisible)
    question.body.setFocus()
    for _ in range(30):
        QTest.keyClick(question.body, Qt.Key.Key_Up)
    wait_until(lambda: seen(question.body))
    assert question._fold.isChecked()


def test_tab_goes_through_a_chat_as_it_is_read(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window(BatchEngine(Script(text="A:\n\n```\ncode\n```\n\nand more.")))
    for question in ("One?", "Two?", "Three?"):
        ask(window, question)
    view = window.chats.view
    window.composer.field.setFocus()
    places: list[QPoint] = []
    for _ in range(90):
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        stop = QApplication.focusWidget()
        assert stop is not None
        if stop is window.composer.field:
            break
        if view.widget().isAncestorOf(stop):
            places.append(stop.mapTo(view.widget(), QPoint(0, 0)))
    assert len(places) > 30
    assert all(a.y() <= b.y() + 8 for a, b in pairwise(places)), places  # a row is one line


def test_tab_goes_through_a_sheet_as_it_is_read(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    models = FakeModels()
    models.more = (ModelStatus("mine", "Mine", ModelState.READY, path=Path("/models/mine")),)
    window = open_window(models=models)
    window.resize(1280, 1400)
    window.show_models()
    wait_until(lambda: "mine" in window.models_sheet.rows)
    models.more = (*models.more, ModelStatus("own", "Own", ModelState.READY, path=Path("/own")))
    window.model_list.refresh()
    wait_until(lambda: "own" in window.models_sheet.rows)
    sheets: list[QWidget] = [window.models_sheet]
    window.presetting.show(window.controller.current)
    window.chat_sheet.show_presets({"Terse": ChatOptions("Be terse.")})
    sheets += [window.chat_sheet, window.sheet]
    for sheet in sheets:
        window.sides.open_sheet(sheet)
        QTest.qWait(20)
        places = []
        widget = sheet.nextInFocusChain()
        while widget is not sheet:
            stop = widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isEnabled()
            scrolled = any(area.isAncestorOf(widget) for area in sheet.findChildren(QScrollArea))
            if stop and scrolled and widget.isVisible() and sheet.isAncestorOf(widget):
                places.append(widget.mapTo(sheet, widget.rect().center()).y())
            widget = widget.nextInFocusChain()
        assert len(places) > 8
        assert all(a <= b + 8 for a, b in pairwise(places)), places  # a row is one line
