"""No piece of a text holds the event loop for long, whatever came before it.

Told in this thread's own processor time: on a shared machine a turn may wait for anything.
"""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QScrollArea
from pytestqt.qtbot import QtBot

from app.ui.look.theme import Theme
from app.ui.markdown.document import DocumentWriter, Kind
from app.ui.markdown.highlight import Highlighter
from app.ui.markdown.sliced import SLICE
from app.ui.markdown.stream import MarkdownStream
from app.ui.markdown.text_view import TextView

WIDE = f"|{' head |' * 200}\n|{'---|' * 200}\n" + f"|{' cell |' * 200}\n" * 600
LONG = "| # | name | what it is |\n|--:|---|---|\n" + "".join(
    f"| {i} | item number {i} | a somewhat longer description of item {i} |\n" for i in range(2_000)
)
CODE = "```python\n" + "".join(f"    v_{i} = f({i})  # a line\n" for i in range(10_000)) + "```\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", [WIDE[: len(WIDE) // 3], LONG, CODE], ids=["wide table", "long table", "code"]
)
def test_no_slice_holds_the_loop(qtbot: QtBot, look: Theme, text: str) -> None:
    view, area = TextView("text"), QScrollArea()
    qtbot.addWidget(area)
    area.setWidgetResizable(True)
    area.setWidget(view)
    area.resize(740, 600)
    area.show()
    writer = DocumentWriter(view.document())
    stream, highlighter = MarkdownStream(writer), Highlighter(view.document())
    spent = []

    def turn() -> None:
        view.decorate(list(writer.decorations))
        QCoreApplication.processEvents()
        spent.append((time.thread_time() - started) * 1000)

    for at in range(0, len(text), SLICE):
        started = time.thread_time()
        stream.feed(text[at : at + SLICE])
        turn()
    started = time.thread_time()
    stream.finish()
    turn()
    for code in (d for d in writer.closed if d.kind is Kind.CODE):
        highlighter.add(code)
    for _ in range(20):
        started = time.thread_time()
        turn()
    while highlighter.busy:
        started = time.thread_time()
        turn()
    quarter = len(text) // SLICE // 4
    first, last = sum(spent[:quarter]), sum(spent[3 * quarter : 4 * quarter])
    print(f"worst {max(spent):.0f} ms; quarters {first:.0f} and {last:.0f} ms; {quarter} slices")
    assert max(spent) < 100
    assert last < 3 * first + 200
