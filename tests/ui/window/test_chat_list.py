"""Rows of the list of chats: what is found is seen, and a title begins where its script does."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem, QWidget

from app.history import Hit
from app.ui.look.theme import Theme
from app.ui.window.chat_list import ROW, ChatListModel, Entry, RowPainter, grouped, near
from app.ui.window.sidebar import WIDTH

NOW = datetime(2026, 5, 14, 12).timestamp()


@pytest.mark.parametrize(
    ("excerpt", "shown"),
    [
        ("few [word] on", "few [word] on"),
        ("…The drafter proposes up to 15 [tokens] after", "… up to 15 [tokens] after"),
        ("no mark at all, and a long text it is", "no mark at all, and a long text it is"),
        ("連続した長い文章がここにあって、その後に[語]が", "… [語]が"),
    ],
)
def test_few_words_stand_before_what_was_found(excerpt: str, shown: str) -> None:
    marked = excerpt.replace("[", Hit.START).replace("]", Hit.STOP)
    assert near(marked).replace(Hit.START, "[").replace(Hit.STOP, "]") == shown


@pytest.mark.parametrize(
    ("title", "right"),
    [
        ("Trip to Lisbon", False),
        ("مرحبا، كيف حالك؟", True),
        ("«שלום» עולם", True),
        ("1. 日本語の勉強", False),
    ],
)
def test_a_title_begins_where_its_script_does(look: Theme, title: str, right: bool) -> None:
    owner = QWidget()
    model, painter = ChatListModel(owner), RowPainter(owner)
    model.set_rows(list(grouped([Entry("a", title, NOW)], date(2026, 5, 14))))
    image = QImage(WIDTH, ROW, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    option = QStyleOptionViewItem()
    option.rect = QRect(0, 0, WIDTH, ROW)
    option.state = QStyle.StateFlag.State_Enabled
    drawing = QPainter(image)
    painter.paint(drawing, option, model.index(1))
    drawing.end()
    inked = [
        x for x in range(WIDTH) if any(image.pixelColor(x, y).lightness() < 160 for y in range(ROW))
    ]
    left_room, right_room = inked[0], WIDTH - inked[-1]
    assert (left_room > right_room) == right
