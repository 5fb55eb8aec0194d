"""Lines of widgets and of words: side by side where there is room, else below each other."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.ui.look.flow import Flow
from app.ui.look.labels import Line, lines
from app.ui.look.theme import Theme


@pytest.mark.parametrize(("even", "counts"), [(False, [5, 1]), (True, [3, 3])])
def test_lines_may_be_even(qtbot: QtBot, look: Theme, even: bool, counts: list[int]) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    flow = Flow(page, even=even)
    buttons = [QPushButton(str(i)) for i in range(6)]
    for button in buttons:
        button.setFixedSize(60, 20)
        flow.addWidget(button)
    page.resize(310, 100)
    page.show()
    tops = [button.y() for button in buttons]
    assert [tops.count(top) for top in sorted(set(tops))] == counts
    page.resize(360, 100)
    assert {button.y() for button in buttons} == {0}


def test_a_line_is_as_wide_as_its_words_and_wraps_where_it_must(qtbot: QtBot, look: Theme) -> None:
    page, line, beside = QWidget(), Line(), QPushButton("why?")
    qtbot.addWidget(page)
    line.setText("222 tok · 961 tok/s · first after 0.2 s · 9.6 per round · ×16.0")
    row = QHBoxLayout(page)
    row.addWidget(line)
    row.addWidget(beside)
    row.addStretch(1)
    page.resize(900, 100)
    page.show()
    one = line.heightForWidth(900)
    assert line.width() == line.sizeHint().width() < 600
    assert line.sizeHint().height() == one
    page.resize(300, 200)
    assert beside.geometry().right() <= 300
    assert line.heightForWidth(line.width()) > one


def test_lines_of_an_answers_details_have_air(look: Theme) -> None:
    told = lines(["Slow: <why>"], ["a", "b"])
    assert told.startswith('<div style="line-height:140%">')
    assert "&lt;why&gt;" in told
    assert told.count("<br>") == 2
