"""What is on the page is what was written, and can be copied back."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication, QTextCursor, QTextDocument
from pytestqt.qtbot import QtBot

from app.conversation import Role, Turn
from app.ui.chat.message import AnswerView
from app.ui.look.icons import IconButton
from app.ui.look.theme import Theme
from app.ui.markdown.document import CHUNK, DocumentWriter, Kind, plain_text
from app.ui.markdown.stream import MarkdownStream
from app.ui.markdown.text_view import TextView
from tests.ui.conftest import WaitUntil
from tests.ui.markdown.test_stream import TEXT

BRACKETS = (
    "<smirk> waffles\n\n`std::vector<int> a;` and std::vector<std::string> b;\n\n"
    "<script>alert(1)</script>\n\n```html\n<b>never closed &amp; bold\n"
)


def render(pieces: list[str]) -> tuple[QTextDocument, DocumentWriter]:
    document = QTextDocument()
    writer = DocumentWriter(document)
    stream = MarkdownStream(writer)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return document, writer


def write_plain(document: QTextDocument, text: str) -> None:
    writer = DocumentWriter(document)
    writer.open_plain()
    writer.more(text)


def everything(document: QTextDocument) -> str:
    return plain_text(document, 0, document.characterCount())


def test_streamed_equals_whole(look: Theme) -> None:
    streamed, one = render(list(TEXT))
    whole, other = render([TEXT])
    assert streamed.toHtml() == whole.toHtml()
    assert [(d.kind, d.start, d.end) for d in one.closed] == [
        (d.kind, d.start, d.end) for d in other.closed
    ]


def test_every_character_is_visible(look: Theme) -> None:
    shown = everything(render(list(BRACKETS))[0])
    for text in (
        "<smirk> waffles",
        "std::vector<int> a;",
        "std::vector<std::string> b;",
        "<script>alert(1)</script>",
        "<b>never closed &amp; bold",
    ):
        assert text in shown


def test_all_copied_is_what_was_written(qtbot: QtBot, look: Theme) -> None:
    view = AnswerView(Turn(Role.ASSISTANT, None, BRACKETS))
    qtbot.addWidget(view)
    body = view.findChildren(TextView)[-1]
    body.selectAll()
    data: QMimeData = body.createMimeDataFromSelection()
    assert data.text() == BRACKETS


def test_lists_are_copied_with_their_markers(look: Theme) -> None:
    document, _ = render(list("3. c\n4. d\n   - x\n5. e\n\n- y\n"))
    assert everything(document).split("\n") == ["3. c", "4. d", "- x", "5. e", "- y"]


def test_code_is_copied_as_written(qtbot: QtBot, look: Theme) -> None:
    code = "def f():\n\n    return '😊' * 2  # x"
    document, writer = render([f"text 😊\n\n```python\n{code}\n```\n"])
    place = next(d for d in writer.closed if d.kind is Kind.CODE)
    assert plain_text(document, place.start, place.end) == code


def test_long_lines_are_laid_out_in_parts_and_copied_whole(look: Theme) -> None:
    line = "A" * (CHUNK * 3 + 7)
    document = QTextDocument()
    write_plain(document, f"{line}\nshort")
    assert document.blockCount() == 5
    assert everything(document) == f"{line}\nshort"
    fenced, writer = render([f"```\n{line[:CHUNK]}", f"{line[CHUNK:]}\n", "x\n```\n"])
    assert plain_text(fenced, writer.closed[0].start, writer.closed[0].end) == f"{line}\nx"


@pytest.mark.parametrize("before", ["", "text\n\n", "1. one\n\n"])
def test_code_has_its_header_wherever_it_stands(qtbot: QtBot, look: Theme, before: str) -> None:
    view = AnswerView(Turn(Role.ASSISTANT, None, f"{before}```python\nx = 1\n```"))
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.show()
    body = view.findChildren(TextView)[-1]
    button = body.findChildren(IconButton)[0]
    assert button.y() >= 4
    code = body.document().lastBlock()
    while code.text() != "x = 1":
        code = code.previous()
    top = body.document().documentLayout().blockBoundingRect(code).top()
    assert button.geometry().bottom() <= top
    assert body.height() >= top + 20


def test_empty_code_keeps_its_place(look: Theme) -> None:
    document, writer = render(list("```\n```\nafter\n"))
    assert everything(document).split("\n") == ["", "after"]
    assert writer.closed[0].end == 0


def test_a_part_of_a_text_is_copied_as_seen(qtbot: QtBot, look: Theme) -> None:
    view = TextView("text")
    qtbot.addWidget(view)
    write_plain(view.document(), "one 😊 two")
    cursor = view.textCursor()
    cursor.setPosition(4)
    cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    view.copy()
    assert QGuiApplication.clipboard().text() == "😊 two"


@pytest.mark.parametrize("image", ["![a](http://x.y/z.png)", "![b](file:///etc/passwd)"])
def test_images_are_words(image: str, look: Theme) -> None:
    document, _ = render([image])
    assert "￼" not in document.toPlainText()
    assert image.partition("(")[2].rstrip(")") in document.toPlainText()


def test_a_theme_change_writes_the_same_text(
    qtbot: QtBot, look: Theme, wait_until: WaitUntil
) -> None:
    view = AnswerView(Turn(Role.ASSISTANT, None, TEXT, "a thought"))
    qtbot.addWidget(view)
    view.show()
    wait_until(lambda: view.rendered)
    before = view.findChildren(TextView)[-1].toPlainText()
    try:
        look.choose("dark")
        wait_until(lambda: view.rendered)
        assert view.findChildren(TextView)[-1].toPlainText() == before
    finally:
        look.choose("light")
