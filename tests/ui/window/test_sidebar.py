"""What a mouse and keys do in the list of chats."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu

from app.history import Hit
from app.ui.window.chat_list import Entry
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow, WaitUntil, activated

Ask = Callable[[MainWindow, str], None]


def titles(window: MainWindow) -> list[str]:
    return [s.title for s in window.controller.book.summaries]


@pytest.fixture
def window(open_window: OpenWindow, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> MainWindow:
    """With two chats, the second on view; a menu does not wait for anybody."""
    window = open_window()
    for text in ("One?", "Two?"):
        window.controller.new_chat()
        ask(window, text)
    return window


def place(window: MainWindow, title: str) -> QPoint:
    rows = window.sidebar.list
    model = rows.model()
    for row in range(model.rowCount()):
        entry = rows.rows.entry(model.index(row, 0))
        if isinstance(entry, Entry) and entry.title == title:
            return rows.visualRect(model.index(row, 0)).center()
    raise AssertionError(title)


def test_a_right_click_offers_what_can_be_done(
    window: MainWindow, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, where: opened.append(menu))
    rows = window.sidebar.list.viewport()
    at = place(window, "One?")
    click = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, rows.mapToGlobal(at))
    QApplication.sendEvent(rows, click)
    actions = {a.text(): a for a in opened[0].actions()}
    assert {"Rename", "Pin to the top", "Export", "Delete"} <= actions.keys()
    assert window.controller.current.title == "Two?"  # it opens nothing
    actions["Delete"].trigger()
    wait_until(lambda: titles(window) == ["Two?"])


def test_a_click_in_the_composer_leaves_a_name_as_it_was(
    window: MainWindow, wait_until: WaitUntil
) -> None:
    wait_until(lambda: activated(window))
    window.sidebar.list.rename(window.controller.current.id)
    field = window.sidebar.list.findChild(QLineEdit)
    assert field is not None
    field.setText("Other")
    QTest.mouseClick(window.composer.field.viewport(), Qt.MouseButton.LeftButton)
    wait_until(lambda: not field.isVisible())
    assert window.composer.field.hasFocus()  # else Space would open a chat
    assert titles(window)[0] == "Two?"


def test_keys_of_a_file_manager_work_in_the_list(window: MainWindow, wait_until: WaitUntil) -> None:
    rows = window.sidebar.list
    QTest.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=place(window, "One?"))
    wait_until(lambda: activated(window))  # F2 is the window's: one that has no keys hears nothing
    rows.setFocus()
    QTest.keyClick(rows, Qt.Key.Key_F2)
    field = rows.findChild(QLineEdit)
    assert field is not None
    field.setText("Uno")
    QTest.keyClick(field, Qt.Key.Key_Return)
    wait_until(lambda: sorted(titles(window)) == ["Two?", "Uno"])
    rows.setFocus()
    QTest.keyClick(rows, Qt.Key.Key_Delete)
    wait_until(lambda: titles(window) == ["Two?"])


def test_a_name_is_that_of_the_chat_it_was_written_for(
    window: MainWindow, ask: Ask, wait_until: WaitUntil
) -> None:
    rows = window.sidebar.list
    first = next(s for s in window.controller.book.summaries if s.title == "One?")
    rows.rename(first.id)
    field = rows.findChild(QLineEdit)
    assert field is not None
    ask(window, "More?")  # of the chat on view, whose row is chosen again
    window.controller.book.pin(first.id, True)  # its row is another one now
    wait_until(lambda: field.geometry().contains(place(window, "One?")))
    field.setText("Uno")
    QTest.keyClick(field, Qt.Key.Key_Return)
    wait_until(lambda: sorted(titles(window)) == ["Two?", "Uno"])
    # It goes with its chat.
    rows.rename(first.id)
    window.controller.delete_chat(first.id)
    wait_until(lambda: titles(window) == ["Two?"])
    assert rows._field is None


def test_a_chat_that_a_search_has_not_found_can_be_renamed(window: MainWindow) -> None:
    window.sidebar.search.setText("nowhere")
    window.sidebar._came(window.sidebar._asked, ())
    window.actions_.rename.trigger()
    assert window.sidebar.list.findChild(QLineEdit) is not None
    assert not window.sidebar.searching


def test_a_deletion_is_undone_by_its_key_from_the_composer(
    window: MainWindow, wait_until: WaitUntil
) -> None:
    wait_until(lambda: activated(window))
    window.composer.field.setFocus()
    window.actions_.delete_chat.trigger()
    wait_until(lambda: titles(window) == ["One?"])
    keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClicks(window.composer.field, "word")
    QTest.keyClick(window.composer.field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert window.composer.field.toPlainText() == ""
    QTest.keyClick(window.composer.field, Qt.Key.Key_Z, keys)  # the text's own comes first
    assert window.composer.field.toPlainText() == "word"
    assert titles(window) == ["One?"]
    QTest.keyClick(window.composer.field, Qt.Key.Key_Z, keys)
    wait_until(lambda: sorted(titles(window)) == ["One?", "Two?"])


def test_what_was_found_follows_its_chats(window: MainWindow, wait_until: WaitUntil) -> None:
    sidebar = window.sidebar
    hits = tuple(Hit(s.id, s.title, False, s.used) for s in window.controller.book.summaries)
    sidebar._came(sidebar._asked, hits)

    def shown() -> list[str]:
        return [row.title for row in sidebar.list.rows.rows if isinstance(row, Entry)]

    assert shown() == ["Two?", "One?"]
    window.controller.book.rename(hits[1].chat, "Uno")
    wait_until(lambda: shown() == ["Two?", "Uno"])
    window.controller.delete_chat(hits[0].chat)
    wait_until(lambda: shown() == ["Uno"])
