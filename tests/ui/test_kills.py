"""What a kill -9 costs, twice; `python -m tests.ui.kills` does it fifty times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.conversation import Conversation, End
from app.drafting import Draft
from app.history import History
from tests.ui.kills import losses, one


@pytest.mark.parametrize("seed", [101, 102])
def test_a_kill_loses_nothing_that_was_finished(tmp_path: Path, seed: int) -> None:
    assert one(tmp_path, seed, longest_s=3.0) == ""


def test_what_was_lost_is_found(tmp_path: Path) -> None:
    """The check itself: a file that lacks all of what the log tells."""
    chat = Conversation(draft=Draft("kept").json())
    answer = chat.answer(chat.ask("Question"))
    answer.text, answer.end = "half", End.COMING
    history = History(tmp_path / "chats.db")
    history.open()
    history.save(chat, chat.turns.values())
    history.close()
    told = [
        {"at": 90.0, "id": "other", "question": "missing", "done": "an answer"},
        {"at": 97.0, "id": answer.id, "question": answer.parent, "came": 40},
        {"at": 97.0, "drafted": chat.id, "draft": "lost"},
    ]
    (tmp_path / "log").write_text("\n".join(map(json.dumps, told)) + "\n{", encoding="utf-8")

    assert losses(tmp_path, killed=100.0) == [
        "the question missing",
        "a draft, 3.0 s before",
        "a finished answer, 10.0 s before",
        "36 characters of a running answer",
    ]
    assert losses(tmp_path, killed=90.1) == ["the question missing"]
