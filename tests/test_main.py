"""What a start without a command opens."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import app.cli
from app import __main__ as program
from app.ui import application


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The chats that a window was opened with, or the arguments of the command line."""
    told: list[Any] = []

    def window(chats: Sequence[Path]) -> int:
        told.append([*chats])
        return 0

    monkeypatch.setattr(application, "run", window)
    monkeypatch.setattr(app.cli, "main", lambda arguments: told.append(tuple(arguments)) or 0)
    yield told
    gc.enable()


def test_a_desktop_opens_exported_chats(begun: list[Any], tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.txt"
    renamed.touch()
    lost = Path("chats of May.JSON")
    for arguments in ([], [str(lost)], [str(renamed), "more.json"], ["devices", "--json"]):
        assert program.main(arguments) == 0
    more = Path("more.json").absolute()
    assert begun == [[], [lost.absolute()], [renamed, more], ("devices", "--json")]


def test_what_is_no_file_is_a_command(begun: list[Any], tmp_path: Path) -> None:
    (tmp_path / "ask").touch()
    for arguments in (["ask", "Hello"], [str(tmp_path / "absent")]):
        assert program.main(arguments) == 0
        assert begun.pop() == tuple(arguments)
