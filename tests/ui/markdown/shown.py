"""A text as a view shows it."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.ui.markdown.document import DocumentWriter
from app.ui.markdown.stream import MarkdownStream
from app.ui.markdown.text_view import TextView


def shown(qtbot: QtBot, text: str, width: int, at_once: int | None = None) -> TextView:
    """`text` in a view `width` px wide, laid out; `at_once` signs of it come at a time."""
    view = TextView("text", lambda: text)
    qtbot.addWidget(view)
    view.resize(width, 100)
    view.show()
    writer = DocumentWriter(view.document())
    stream = MarkdownStream(writer)
    step = at_once or len(text)
    for at in range(0, len(text), step):
        stream.feed(text[at : at + step])
        view.decorate(list(writer.decorations))
    stream.finish()
    view.decorate(list(writer.decorations))
    view.document().documentLayout().documentSize()
    return view
