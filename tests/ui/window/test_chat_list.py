"""Rows of the list of chats: what is found is seen, and a title begins where its script does."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem, QWidget

from app.history import Hit
from app.ui.look.theme import Theme
from app.ui.window.chat_list import (
    ROW,
    ChatListModel,
    Entry,
    RowPainter,
    grouped,
    near,
    told_apart,
)
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


def test_the_newest_stands_on_top_under_its_day() -> None:
    today = date(2026, 5, 14)  # a Thursday
    day = 86_400
    ages = (0, 1, 2, 5, 8, 20, 60, 400)
    entries = [Entry(str(age), f"Chat {age}", NOW - age * day) for age in ages]
    entries.append(Entry("old", "Pinned long ago", NOW - 900 * day, pinned=True))
    rows = [row if isinstance(row, str) else row.title for row in grouped(entries, today)]
    assert rows == [
        *("Pinned", "Pinned long ago", "Today", "Chat 0", "Yesterday", "Chat 1"),
        *("Tuesday", "Chat 2", "Saturday", "Chat 5", "Last week", "Chat 8"),
        *("3 weeks ago", "Chat 20", "March", "Chat 60", "April 2025", "Chat 400"),
    ]


def test_equal_titles_are_told_apart_by_their_time() -> None:
    entries = [
        Entry("a", "Trip to Lisbon", NOW),
        Entry("b", "trip to lisbon", NOW - 3_600),
        Entry("c", "Trip to Lisbon", NOW - 30 * 86_400),
        Entry("d", "Another", NOW),
    ]
    told = [entry.apart for entry in told_apart(entries, date(2026, 5, 14))]
    assert told[3] == ""
    assert len(set(told[:3])) == 3
    assert all(told[:3])
