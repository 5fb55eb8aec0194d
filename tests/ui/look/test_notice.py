"""Messages: equal ones stand once, what is no longer true goes, and many take little room."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.ui.look.notice import SEEN, Notices
from app.ui.look.theme import Theme
from tests.ui.conftest import WaitUntil


@pytest.fixture
def notices(qtbot: QtBot, look: Theme) -> Notices:
    result = Notices()
    qtbot.addWidget(result)
    return result


def seen(notices: Notices) -> list[str]:
    return [n.message for n in notices.all if n.isVisibleTo(notices)]


def test_what_is_said_twice_stands_once(notices: Notices) -> None:
    for _ in range(14):
        notices.add("The disk is full.", "Make room.", "error")
    assert seen(notices) == ["The disk is full."]
    notices.add("The disk is full.", "Choose another folder.", "error")
    assert len(seen(notices)) == 2


def test_a_topic_has_one_message(notices: Notices) -> None:
    notices.add("No GPU.", topic="model")
    notices.add("Something else.")
    notices.add("No memory.", topic="model")
    assert seen(notices) == ["Something else.", "No memory."]
    notices.drop("model")
    assert seen(notices) == ["Something else."]


def test_many_are_told_by_their_number_and_come_up_again(notices: Notices) -> None:
    for i in range(14):
        notices.add(f"Message {i}")
    assert seen(notices) == [f"Message {i}" for i in range(14 - SEEN, 14)]
    assert notices._older.text() == "11 older messages"
    notices.all[-1].dismiss()
    assert seen(notices) == [f"Message {i}" for i in range(13 - SEEN, 13)]
    notices.close_all()
    assert not notices.isVisibleTo(notices.parentWidget())
    assert not notices.all


def test_where_there_is_little_room_the_newest_is_seen_whole(notices: Notices) -> None:
    for i in range(3):
        notices.add(f"Message {i}")
    notices.set_room(20)
    assert seen(notices) == ["Message 2"]
    notices.set_room(200)
    assert len(seen(notices)) == 3


def are_below(head: QLabel, buttons: list[QPushButton]) -> list[bool]:
    """Of each button, whether it stands below the text and not beside it."""
    bottom = head.mapToGlobal(head.rect().bottomLeft()).y()
    return [button.mapToGlobal(QPoint(0, 0)).y() > bottom for button in buttons]


def test_buttons_stand_below_the_text_where_it_is_narrow(
    notices: Notices, wait_until: WaitUntil
) -> None:
    notice = notices.add("The GPU has 2.1 GB free and the model needs 3.4 GB.", level="error")
    buttons = [notice.add_button(text) for text in ("Fit the context", "Use the CPU")]
    head = next(label for label in notice.findChildren(QLabel) if label.text() == notice.message)
    notices.show()
    for width, below in ((720, False), (328, True)):
        notices.resize(width, 200)
        wait_until(lambda below=below: are_below(head, buttons) == [below, below])
        assert notice.width() == width
        assert head.height() >= head.heightForWidth(head.width())


def test_names_stand_in_quotes_and_not_between_backticks(notices: Notices) -> None:
    notice = notices.add("`a.bin` is no text.", "Use `slipstream convert` for it.")
    assert notice.accessibleName() == "“a.bin” is no text. Use “slipstream convert” for it."


def test_a_button_mends_and_closes(notices: Notices) -> None:
    done: list[None] = []
    notices.add("No GPU.").add_button("Use the CPU").clicked.connect(lambda: done.append(None))
    notices.all[0].findChildren(type(notices.all[0].add_button("x")))[0].click()
    assert done
    assert not notices.all
