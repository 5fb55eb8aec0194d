"""What is wider than the page scrolls sideways for itself, and the text beside it stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QScrollBar
from pytestqt.qtbot import QtBot

from app.ui.look import theme
from app.ui.look.theme import Theme
from app.ui.markdown.document import DocumentWriter
from app.ui.markdown.formula import typesetter
from app.ui.markdown.stream import MarkdownStream
from app.ui.markdown.text_view import TextView
from tests.ui.conftest import WaitUntil
from tests.ui.markdown.shown import shown
from tests.ui.wheel import turn

LONG = "x = [" + ", ".join(str(i) for i in range(100)) + "]"
TABLE = f"|{' head |' * 40}\n|{' --- |' * 40}\n|{' cell |' * 40}\n"
TEXT = (
    f"Before it.\n\n```python\n{LONG}\n```\n\nBetween.\n\n```python\nshort = 1\n```\n\nAfter it.\n"
)


@pytest.fixture
def look_unwrapped(look: Theme) -> Iterator[Theme]:
    look.set_code_wrap(False)
    yield look
    look.set_code_wrap(True)


def view_of(qtbot: QtBot, text: str) -> TextView:
    return shown(qtbot, text, 400, at_once=60)


def bars(view: TextView) -> list[QScrollBar]:
    return [b for b in view.viewport().findChildren(QScrollBar) if b.isVisible()]


def line_of(view: TextView, text: str) -> QImage:
    """A line as it is painted."""
    cursor = view.document().find(text)
    top = view.cursorRect(cursor).top()
    height = view.cursorRect(cursor).height()
    return view.grab().toImage().copy(0, top, 400, height)


def test_code_scrolls_and_the_text_beside_it_stays(qtbot: QtBot, look_unwrapped: Theme) -> None:
    view = view_of(qtbot, TEXT)
    (bar,) = bars(view)  # of the long code; the short one has none
    before = {text: line_of(view, text) for text in ("Before", "Between", "short", "After")}
    code = line_of(view, "x = [")
    bar.setValue(120)
    for text, image in before.items():
        assert line_of(view, text) == image, text
    assert line_of(view, "x = [") != code
    bar.setValue(0)
    assert line_of(view, "x = [") == code


def test_the_end_of_a_line_can_be_seen(qtbot: QtBot, look_unwrapped: Theme) -> None:
    view = view_of(qtbot, TEXT)
    (bar,) = bars(view)
    end = view.document().find("99]")
    bar.setValue(bar.maximum())
    seen = view.cursorRect(end).right() - bar.value()
    assert 400 - 3 * theme.Space.L < seen <= 400 - theme.Space.L


def test_the_wheel_scrolls_what_is_under_it(qtbot: QtBot, look_unwrapped: Theme) -> None:
    view = view_of(qtbot, TEXT)
    (bar,) = bars(view)

    def across(text: str) -> bool:
        at = QPointF(20, view.cursorRect(view.document().find(text)).center().y())
        return turn(view.viewport(), at, across=-120)

    assert not across("Between")
    assert bar.value() == 0
    assert across("x = [")
    assert bar.value() == 60


def test_what_a_cursor_goes_to_is_seen(qtbot: QtBot, look_unwrapped: Theme) -> None:
    view = view_of(qtbot, TEXT)
    (bar,) = bars(view)
    view.setTextCursor(view.document().find("x = ["))
    QTest.keyClick(view, Qt.Key.Key_End, Qt.KeyboardModifier.ShiftModifier)
    assert bar.value() > bar.maximum() / 2
    QTest.keyClick(view, Qt.Key.Key_Home, Qt.KeyboardModifier.ShiftModifier)
    assert bar.value() == 0
    view.reveal(view.document().find("99]"))
    assert bar.value() > bar.maximum() / 2


def test_what_is_clicked_is_what_is_seen_there(qtbot: QtBot, look_unwrapped: Theme) -> None:
    view = view_of(qtbot, TEXT)
    (bar,) = bars(view)
    wanted = view.document().find("57")
    there = view.cursorRect(wanted)
    bar.setValue(there.center().x() - 200)
    place = QPoint(there.left() - 6 - bar.value(), there.center().y())
    QTest.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert view.textCursor().selectedText() == "57"
    assert view.horizontalScrollBar().value() == 0


def test_a_wide_table_scrolls_and_its_bar_has_room(qtbot: QtBot, look: Theme) -> None:
    view = view_of(qtbot, f"{TABLE}\nAfter it.\n")
    (bar,) = bars(view)
    after = line_of(view, "After")
    last = view.document().find("cell", view.document().characterCount() // 2)
    assert bar.y() >= view.cursorRect(last).bottom() - 2
    assert bar.geometry().bottom() < view.cursorRect(view.document().find("After")).top()
    bar.setValue(200)
    assert line_of(view, "After") == after
    assert view.height() > view_of(qtbot, TABLE).document().size().height()


GRID = """Before it.

| Setting | Default value | Configuration | Since version | Remark |
|:--|--:|---|:-:|---|
| temperature | 0.7 | higher is more varied | 2026-11-28 | unsupportable |
| `n_ctx_per_seq` | 20 | a **considerable** number | 0.2.0 | |

After it.
"""


@pytest.fixture(params=[15, 22])
def text_size(request: pytest.FixtureRequest, look: Theme) -> Iterator[None]:
    look.set_text_size(request.param)
    yield
    look.set_text_size(15)


@pytest.mark.usefixtures("text_size")
@pytest.mark.parametrize("at_once", [1, 7, None])
def test_a_narrow_page_breaks_no_word_of_a_table(
    qtbot: QtBot, look: Theme, at_once: int | None
) -> None:
    view = shown(qtbot, GRID, 320, at_once)
    (bar,) = bars(view)
    for word in ("temperature", "unsupportable", "n_ctx_per_seq", "considerable", "2026-11-28"):
        cursor = view.document().find(word)
        end = view.cursorRect(cursor)
        cursor.setPosition(cursor.selectionStart())
        start = view.cursorRect(cursor)
        assert (start.top(), start.height()) == (end.top(), end.height()), word
        assert 0 <= start.left() < end.right(), word
    last = view.cursorRect(view.document().find("unsupportable")).right()
    assert 320 < last <= 320 + bar.maximum()
    before = view.cursorRect(view.document().find("0.2.0"))
    after = view.cursorRect(view.document().find("After"))
    assert before.bottom() < bar.y()
    assert bar.geometry().bottom() < after.top()
    lines = {text: line_of(view, text) for text in ("Before", "After")}
    bar.setValue(bar.maximum())
    assert {text: line_of(view, text) for text in lines} == lines


LOOKS = """| Setting | Value | Meaning | Remark |
|:--|--:|---|---|
| **Internationalization**: | `configuration_key`. | un**believ**ableness1 | 5\u00a0**kilometres** |
| (`configuration_key`) | 「`configuration`」です | a `b`-*c* of it | 設定 |
"""


@pytest.mark.usefixtures("text_size")
def test_a_word_of_several_looks_is_not_broken_either(qtbot: QtBot) -> None:
    view = shown(qtbot, LOOKS, 260, at_once=9)
    for word in (
        "Internationalization:",
        "configuration_key.",
        "unbelievableness1",
        "5\u00a0kilometres",
        "(configuration_key)",
        "「configuration」",
    ):
        cursor = view.document().find(word)
        places = (cursor.selectionStart(), cursor.selectionEnd() - 1)
        tops = set()
        for place in places:
            cursor.setPosition(place)
            tops.add(view.cursorRect(cursor).top())
        assert len(tops) == 1, word


def test_a_table_is_as_wide_as_the_page_lets_it(qtbot: QtBot, look: Theme) -> None:
    """Streamed in a narrow page and seen in a wide one it is as if it had always been there."""
    always = shown(qtbot, GRID, 700)
    view = shown(qtbot, GRID, 320, at_once=5)
    assert bars(always) == []
    narrow = view.height()
    for width in (700, 320, 700):
        view.resize(width, view.height())
        assert bool(bars(view)) == (width == 320)
        assert view.height() == (narrow if width == 320 else always.height())
    assert view.document().toHtml() == always.document().toHtml()
    assert view.grab().toImage() == always.grab().toImage()


def test_a_long_table_is_as_wide_all_along(qtbot: QtBot, look: Theme) -> None:
    rows = "".join(f"| {i} | word {i} | configuration | 0.{i} | something |\n" for i in range(60))
    text = f"| # | Name | Setting | Since version | Remark |\n|--:|---|---|---|---|\n{rows}\nEnd."
    view = shown(qtbot, text, 320, at_once=40)
    lefts = set()
    cursor = view.document().find("configuration")
    while not cursor.isNull():
        lefts.add(view.cursorRect(cursor).right())
        cursor = view.document().find("configuration", cursor)
    assert len(lefts) == 1
    (bar,) = bars(view)
    assert bar.geometry().bottom() < view.cursorRect(view.document().find("End.")).top()


def test_a_table_at_the_end_has_room_for_its_bar(qtbot: QtBot, look: Theme) -> None:
    view = shown(qtbot, GRID.removesuffix("\nAfter it.\n"), 320)
    (bar,) = bars(view)
    assert bar.geometry().bottom() <= view.height()


SUM = "$$ x = " + " + ".join(f"a_{{{i}}}" for i in range(30)) + " $$"


@pytest.mark.parametrize("text", [f"Before it.\n\n{SUM}\n\nAfter it.\n", f"Before it.\n\n{SUM}"])
def test_a_wide_formula_scrolls(
    qtbot: QtBot, look: Theme, wait_until: WaitUntil, text: str
) -> None:
    view = shown(qtbot, text, 320)
    wait_until(lambda: not typesetter().busy and typesetter().known(SUM) is not None)
    wait_until(lambda: len(bars(view)) == 1)
    (bar,) = bars(view)
    assert bar.maximum() > 200
    at = view.document().find("\ufffc").block().layout()
    assert bar.maximum() == pytest.approx(at.lineAt(0).naturalTextRect().right() - 320, abs=1)
    assert bar.geometry().bottom() <= view.height()
    if text.endswith("it.\n"):
        before = line_of(view, "After")
        assert bar.geometry().bottom() < view.cursorRect(view.document().find("After")).top()
        bar.setValue(bar.maximum())
        assert line_of(view, "After") == before
    view.resize(2_000, view.height())
    assert bars(view) == []


def test_wrapped_code_has_no_bar(qtbot: QtBot, look: Theme) -> None:
    assert bars(view_of(qtbot, TEXT)) == []


def test_what_was_written_before_it_was_seen_scrolls_too(
    qtbot: QtBot, look_unwrapped: Theme
) -> None:
    view = TextView("text")
    qtbot.addWidget(view)
    writer = DocumentWriter(view.document())
    stream = MarkdownStream(writer)
    stream.feed(TEXT + TABLE)
    stream.finish()
    view.decorate(list(writer.decorations))
    view.resize(400, 100)
    view.show()
    qtbot.waitUntil(lambda: len(bars(view)) == 2)


def test_a_wide_table_from_right_to_left_begins_at_its_first_column(
    qtbot: QtBot, look: Theme
) -> None:
    head, cells = (" | ".join(f"{word} {i}" for i in range(1, 9)) for word in ("عنوان", "قيمة"))
    view = view_of(qtbot, f"| {head} |\n{'|---' * 8}|\n| {cells} |\n")
    (bar,) = bars(view)
    assert bar.value() == bar.maximum() > 0
    bar.setValue(10)
    view.resize(420, view.height())  # where somebody scrolled to stays
    assert bar.value() == 10
