"""What is selected stays selected while its text is written again, or goes on beyond the view."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent, QTextCursor
from PySide6.QtWidgets import QApplication, QScrollArea, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.ui.look.theme import Theme
from app.ui.markdown.dragging import DragScroll
from app.ui.markdown.markdown_view import MarkdownView
from app.ui.markdown.plain_view import PlainView
from app.ui.markdown.text_view import TextView
from tests.ui.conftest import WaitUntil


@pytest.fixture
def view(qtbot: QtBot, look: Theme) -> MarkdownView:
    result = MarkdownView("text", lambda: "")
    qtbot.addWidget(result)
    result.resize(500, 300)
    result.show()
    return result


def select(view: TextView, first: str, last: str, *, back: bool = False) -> tuple[int, int]:
    """From one word to another, or back from there; where Qt has it begin and end."""
    ends = [
        view.document().find(first).selectionStart(),
        view.document().find(last).selectionEnd(),
    ]
    if back:
        ends.reverse()
    cursor = view.textCursor()
    cursor.setPosition(ends[0])
    cursor.setPosition(ends[1], QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    return cursor.anchor(), cursor.position()


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("Closed.\n\nOne two three", "two", "two"),
        ("Closed.\n\nOne two three", "Closed", "One"),
        ("Closed.\n\nOne two three", "three", "three"),  # it is not to grow
        ("Closed.\n\nOne two three\n\n", "Closed", "three"),
        ("Closed 😀.\n\n*One* 😀 two `three` four", "two", "three"),
        ("- item\n- *other* thing", "other", "thing"),
        ("| a | b |\n|---|---|\n| one | two |\n| three | four |\n| five |", "two", "four"),
    ],
)
def test_it_is_made_in_a_paragraph_that_comes(
    view: MarkdownView, text: str, first: str, last: str, back: bool
) -> None:
    view.add(text)
    ends = select(view, first, last, back=back)
    selected = view.textCursor().selectedText()
    assert selected
    for piece in (" and", " more", "\n", "\n", "Another", " *one", "*"):
        view.add(piece)
        cursor = view.textCursor()
        assert (cursor.anchor(), cursor.position()) == ends
        assert cursor.selectedText() == selected
        assert view.verticalScrollBar().value() == 0
    view.finish()
    assert view.textCursor().selectedText() == selected


def test_it_ends_where_the_text_has_become_another_one(view: MarkdownView) -> None:
    view.add("Some words and *two more")
    select(view, "words", "more")
    view.add("*")
    assert view.textCursor().selectedText() == "words and "


@pytest.mark.parametrize("kind", [MarkdownView, PlainView])
def test_another_theme_keeps_it(
    qtbot: QtBot, look: Theme, wait_until: WaitUntil, kind: type[MarkdownView | PlainView]
) -> None:
    text = "\n\n".join(f"paragraph {i} and **what** it says." for i in range(400))
    view = kind("text", lambda: text)
    qtbot.addWidget(view)
    view.resize(500, 300)
    view.show()
    view.add(text)
    wait_until(lambda: view.rendered)
    ends = select(view, "paragraph 250", "paragraph 300")
    view.rewrite()
    assert not view.rendered  # it is written in slices
    wait_until(lambda: view.rendered)
    assert (view.textCursor().anchor(), view.textCursor().position()) == ends


def test_it_goes_on_beyond_the_edge(qtbot: QtBot, look: Theme, wait_until: WaitUntil) -> None:
    area, page = QScrollArea(), QWidget()
    view = MarkdownView("text", lambda: "")
    column = QVBoxLayout(page)
    column.addWidget(view)
    qtbot.addWidget(area)
    area.setWidgetResizable(True)
    area.setWidget(page)
    area.resize(500, 300)
    area.show()
    area.activateWindow()
    drag = DragScroll(area)
    drag.watch(view)
    view.add("\n\n".join(f"paragraph {i}" for i in range(100)))
    bar, mouse = area.verticalScrollBar(), view.viewport()
    wait_until(lambda: view.rendered and bar.maximum() > 1_000 and area.isActiveWindow())
    bar.setValue(1_000)

    def at(y: int) -> QPoint:
        return mouse.mapFrom(area, QPoint(100, y))

    kind = QEvent.Type
    view.setFocus()
    send(mouse, kind.MouseButtonPress, at(150))
    began = view.textCursor().position()
    send(mouse, kind.MouseMove, at(200))
    qtbot.wait(100)
    assert bar.value() == 1_000
    send(mouse, kind.MouseMove, at(330))
    wait_until(lambda: bar.value() > 1_300)
    assert view.textCursor().anchor() == began
    assert view.cursorRect().top() > at(250).y()
    send(mouse, kind.MouseMove, at(-60))
    wait_until(lambda: bar.value() < 700)
    assert view.textCursor().position() < began == view.textCursor().anchor()
    send(mouse, kind.MouseButtonRelease, at(-60))
    before = bar.value()
    qtbot.wait(100)
    assert bar.value() == before


def send(widget: QWidget, kind: QEvent.Type, at: QPoint) -> None:
    """The left button goes down or up, or is held."""
    button = Qt.MouseButton
    one = button.NoButton if kind is QEvent.Type.MouseMove else button.LeftButton
    held = button.NoButton if kind is QEvent.Type.MouseButtonRelease else button.LeftButton
    place = QPointF(at)
    event = QMouseEvent(
        kind, place, widget.mapToGlobal(place), one, held, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(widget, event)
