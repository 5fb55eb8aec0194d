"""What is written stays until somebody has taken it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from pytestqt.qtbot import QtBot

from app.drafting import Attachment, Draft
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
    composer.send_wanted.connect(lambda: texts.append(composer.draft().message()))
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
    whole = Draft.message
    monkeypatch.setattr(Draft, "message", lambda self: joined.append(None) or whole(self))
    qtbot.keyClicks(composer.field, "Decode this")
    assert composer.send.isEnabled()
    assert not joined


def test_a_blank_paste_is_none(composer: Composer) -> None:
    paste(composer, " " * (LONG_PASTE + 1))
    assert not composer.send.isEnabled()
    assert not composer.chips.isVisible()


def test_a_suggestion_is_sent_when_nothing_is_in_the_way(
    composer: Composer, sent: list[str]
) -> None:
    composer.set_obstacle("Loading the model …")
    composer.set_busy(True)
    composer.suggest("Count to twenty")
    assert composer.field.toPlainText() == "Count to twenty"
    assert "sent as soon as it can be" in composer._hint.whole()
    assert not sent
    composer.set_obstacle("")  # that an answer runs is none: it waits for its turn
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


def test_a_draft_comes_and_goes_as_it_is(composer: Composer) -> None:
    told: list[None] = []
    composer.edited.connect(lambda: told.append(None))
    draft = Draft("Read this:\n", (Attachment("a.py", "x = 1\n"), Attachment("b", "b", True)))
    composer.set_draft(draft)
    assert composer.draft() == draft == Draft.of_json(draft.json())
    assert not told
    assert [c.name.text() for c in composer.chips.chips] == [
        "a.py · 6 characters",
        "b · 1 characters",
    ]
    composer.set_tokens({draft.attachments[0]: 5})
    assert composer.chips.chips[0].name.text() == "a.py · 5 tokens"
    composer.chips.chips[0].away.click()
    assert composer.draft().attachments == draft.attachments[1:]
    assert told


def test_the_name_of_an_attachment_shows_what_is_in_it(qtbot: QtBot, composer: Composer) -> None:
    files = tuple(Attachment(f"{i}.txt", f"text {i}") for i in range(9))
    composer.set_draft(Draft("", files))
    chips, page = composer.chips.chips, composer.chips.page
    qtbot.mouseClick(chips[0].name, Qt.MouseButton.LeftButton)
    assert page.isVisible()
    assert page.isReadOnly()
    assert page.toPlainText() == "text 0"
    qtbot.mouseClick(chips[-1].name, Qt.MouseButton.LeftButton)
    assert not chips[0].name.isChecked()
    assert "text 8" in page.toPlainText()
    composer.set_tokens({files[0]: 2})  # counted meanwhile
    assert page.isVisible()
    page.setFocus()
    qtbot.keyClick(page, Qt.Key.Key_Escape)
    assert not page.isVisible()
    assert chips[-1].name.hasFocus()
    chips[1].name.click()
    chips[1].away.click()  # it goes, and what showed it
    assert not page.isVisible()
    assert composer.draft().attachments == (files[0], *files[2:])
    assert not any(chip.name.isChecked() for chip in composer.chips.chips)


def test_of_a_long_attachment_the_beginning_is_shown(composer: Composer) -> None:
    composer.attach(Attachment("long.txt", "x" * 150_000))
    composer.chips.chips[0].name.click()
    assert composer.chips.page.toPlainText().endswith("xx\n\n… and 50.0k characters more")


def test_many_attachments_take_no_more_room(composer: Composer) -> None:
    many = tuple(Attachment(f"{i}.txt", "text") for i in range(9))
    composer.set_draft(Draft("", many))
    assert len(composer.chips.chips) == 4
    assert "6 more" in composer.chips.chips[-1].name.text()
    composer.chips.chips[-1].away.click()
    assert composer.draft().attachments == many[:-1]


def test_pasted_files_are_given_on(composer: Composer, tmp_path: Path) -> None:
    given: list[list[Path]] = []
    composer.files_given.connect(given.append)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "a b.txt"))])
    composer.field.insertFromMimeData(data)
    assert given == [[tmp_path / "a b.txt"]]
    assert not composer.field.toPlainText()
