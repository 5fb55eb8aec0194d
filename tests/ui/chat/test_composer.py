"""What is written stays until somebody has taken it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, Qt
from pytestqt.qtbot import QtBot

from app.ui.chat.composer import LONG_PASTE, Composer
from app.ui.look.theme import Theme


@pytest.fixture
def composer(qtbot: QtBot, look: Theme) -> Composer:
    result = Composer()
    qtbot.addWidget(result)
    result.show()
    return result


@pytest.fixture
def sent(composer: Composer) -> list[str]:
    texts: list[str] = []
    composer.send_wanted.connect(texts.append)
    return texts


def paste(composer: Composer, text: str) -> None:
    data = QMimeData()
    data.setText(text)
    composer.field.insertFromMimeData(data)


def test_a_message_stays_until_it_is_taken(
    qtbot: QtBot, composer: Composer, sent: list[str]
) -> None:
    paste(composer, "x" * LONG_PASTE + "y")
    qtbot.keyClicks(composer.field, "Hello")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert composer.field.toPlainText() == "Hello"
    composer.clear()
    assert not composer.field.toPlainText()
    assert not composer.send.isEnabled()


def test_a_long_paste_costs_nothing_at_each_key(
    qtbot: QtBot, composer: Composer, monkeypatch: pytest.MonkeyPatch
) -> None:
    paste(composer, "x" * 1_000_000)
    joined: list[None] = []
    whole = Composer._message
    monkeypatch.setattr(Composer, "_message", lambda self: joined.append(None) or whole(self))
    qtbot.keyClicks(composer.field, "Decode this")
    assert composer.send.isEnabled()
    assert not joined
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert len(joined) == 1


def test_a_blank_paste_is_none(composer: Composer) -> None:
    paste(composer, " " * (LONG_PASTE + 1))
    assert not composer.send.isEnabled()
    assert not composer._pastes.isVisible()


def test_a_suggestion_is_sent_when_nothing_is_in_the_way(
    composer: Composer, sent: list[str]
) -> None:
    composer.set_obstacle("Loading the model …")
    composer.set_busy(True)
    composer.suggest("Count to twenty")
    assert composer.field.toPlainText() == "Count to twenty"
    assert "sent as soon as it can be" in composer._hint.text()
    composer.set_obstacle("")
    assert not sent  # an answer still runs
    composer.set_busy(False)
    assert sent == ["Count to twenty"]
    composer.set_busy(True)
    composer.set_busy(False)
    assert len(sent) == 1


def test_a_suggestion_leaves_a_draft_to_the_user(composer: Composer, sent: list[str]) -> None:
    composer.set_obstacle("Loading the model …")
    composer.field.setPlainText("A draft")
    composer.suggest("Count to twenty")
    composer.set_obstacle("")
    assert not sent
    assert composer.field.toPlainText() == "A draft\nCount to twenty"
