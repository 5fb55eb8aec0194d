"""What an empty chat shows: one sentence, and small suggestions."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.ui.chat.welcome import SUGGESTIONS, Welcome
from app.ui.look.theme import COLUMN, Theme


def test_suggestions_are_as_wide_as_their_words(qtbot: QtBot, look: Theme) -> None:
    welcome = Welcome()
    qtbot.addWidget(welcome)
    welcome.resize(COLUMN, 500)
    welcome.show()
    chips = [b for b in welcome.findChildren(QPushButton) if b.text() in SUGGESTIONS]
    assert len({chip.y() for chip in chips}) == 1
    for chip in chips:
        words = chip.fontMetrics().horizontalAdvance(chip.text())
        assert words < chip.width() < words + 40
    welcome.resize(200, 500)
    assert len({chip.y() for chip in chips}) == len(chips)


def test_it_says_how_high_it_is_with_nothing_cut(qtbot: QtBot, look: Theme) -> None:
    welcome = Welcome()
    qtbot.addWidget(welcome)
    welcome.offer_model("Get Qwen3.5-4B", "The guide that answers now is tiny.")
    welcome.resize(240, welcome.needs(240))
    welcome.show()
    for label in welcome.findChildren(QLabel):
        assert label.height() >= label.heightForWidth(label.width())
    assert welcome.needs(240) > welcome.needs(COLUMN)
