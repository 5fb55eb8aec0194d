"""What could not be kept is kept later, as it is then."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest
from PySide6.QtCore import QObject

from app.conversation import Conversation
from app.errors import HistoryError
from app.history import History
from app.ui.archive import Archive
from tests.ui.conftest import WaitUntil


class Failing(History):
    """A disk that is full as long as `full` says so."""

    full = False

    def save(self, *args: object) -> Future[None]:  # type: ignore[override]
        if not self.full:
            return super().save(*args)  # type: ignore[arg-type]
        future: Future[None] = Future()
        future.set_exception(HistoryError("The disk is full.", remedy=""))
        return future


@pytest.fixture
def history(tmp_path: Path) -> Failing:
    result = Failing(tmp_path / "chats.db")
    result.open().result()
    return result  # its archive closes it


def kept(path: Path, chat: str) -> list[str]:
    history = History(path)
    history.open().result()
    found, _ = history.load(chat).result()
    history.close()
    return [turn.text for turn in found.turns.values()] if found else []


@pytest.fixture
def chat() -> Conversation:
    result = Conversation()
    result.answer(result.ask("A question")).text = "an answer"
    return result


@pytest.mark.parametrize("undone_while_full", [False, True])
def test_a_deletion_that_was_not_kept_can_be_undone(
    owner: QObject,
    history: Failing,
    chat: Conversation,
    wait_until: WaitUntil,
    undone_while_full: bool,
) -> None:
    archive = Archive(history, owner)
    archive.save(chat, chat.turns.values())
    history.full = True
    removed = chat.remove(next(iter(chat.turns.values())))
    failed: list[object] = []
    archive.failed.connect(failed.append)
    archive.save(chat, gone=[turn.id for turn in removed.turns])
    wait_until(lambda: bool(failed))
    history.full = undone_while_full
    assert chat.restore(removed)
    archive.save(chat, removed.turns)
    history.full = False
    archive.close()
    assert kept(history.path, chat.id) == ["A question", "an answer"]


def test_a_turn_that_was_not_kept_and_is_deleted_stays_away(
    owner: QObject, history: Failing, chat: Conversation, wait_until: WaitUntil
) -> None:
    archive = Archive(history, owner)
    history.full = True
    failed: list[object] = []
    archive.failed.connect(failed.append)
    archive.save(chat, chat.turns.values())
    wait_until(lambda: bool(failed))
    assert archive.unkept(chat.id)
    history.full = False
    chat.remove(next(iter(chat.turns.values())))
    other = chat.ask("Another")
    archive.save(chat, [other])
    archive.close()
    assert kept(history.path, chat.id) == ["Another"]
