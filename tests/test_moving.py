"""Chats and models go where the user wants them, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app import moving, paths
from app.library import Library
from app.settings import Settings


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / "home"))
    yield
    paths.use_data(None)


def filled() -> None:
    (paths.models() / "mine").mkdir(parents=True)
    (paths.models() / "mine" / "target.gguf").write_text("weights")
    (paths.data() / "chats.sqlite").write_text("chats")


def again(**chosen: str) -> list[str]:
    """The next start."""
    paths.use_data(None)
    return moving.settle(Settings(**chosen))


def test_by_default_all_is_where_it_was() -> None:
    filled()
    assert again() == []
    assert (paths.data() / "chats.sqlite").is_file()


def test_data_moves_with_the_models_in_it(tmp_path: Path) -> None:
    filled()
    assert again(data=str(tmp_path / "there")) == []
    assert (tmp_path / "there" / "chats.sqlite").read_text() == "chats"
    assert (paths.models() / "mine" / "target.gguf").is_file()
    assert paths.models() == tmp_path / "there" / "models"


def test_another_folder_for_models_within_it_moves_along(tmp_path: Path) -> None:
    """Both settings at once: one that lies elsewhere stays where it is."""
    filled()
    paths.models().rename(paths.data() / "more")
    assert again(data=str(tmp_path / "there"), models_folder="more") == []
    assert Library.of_user("more").root == tmp_path / "there" / "more"
    assert (Library.of_user("more").root / "mine" / "target.gguf").is_file()
    elsewhere = tmp_path / "drive"
    elsewhere.mkdir()
    assert again(data=str(tmp_path / "third"), models_folder=str(elsewhere)) == []
    assert Library.of_user(str(elsewhere)).root == elsewhere
    assert elsewhere.is_dir()


def test_from_one_place_to_another_and_back(tmp_path: Path) -> None:
    filled()
    for place in ("one", "two"):
        assert again(data=str(tmp_path / place)) == []
        assert again(data=str(tmp_path / place)) == []  # and a start in between
        assert (paths.data() / "chats.sqlite").is_file()
    assert not list((tmp_path / "one").iterdir())
    assert again() == []
    assert (tmp_path / "home" / "data" / "chats.sqlite").is_file()


def test_what_is_there_already_is_not_written_over(tmp_path: Path) -> None:
    filled()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "chats.sqlite").write_text("others")
    (problem,) = again(data=str(tmp_path / "there"))
    assert "`chats.sqlite` is there already" in problem
    assert (tmp_path / "there" / "chats.sqlite").read_text() == "others"
    assert (paths.data() / "chats.sqlite").read_text() == "chats"
    assert paths.data() == tmp_path / "home" / "data"


def test_a_disk_that_fills_leaves_all_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled()
    real = moving.shutil.move

    def move(old: Path, new: Path) -> None:
        if old.name == "models" and new.parent.name == "there":
            raise OSError(28, "No space left on device")
        real(old, new)

    monkeypatch.setattr(moving.shutil, "move", move)
    (problem,) = again(data=str(tmp_path / "there"))
    assert "No space left" in problem
    assert (paths.data() / "chats.sqlite").is_file()
    assert (paths.models() / "mine" / "target.gguf").is_file()


def test_not_into_itself(tmp_path: Path) -> None:
    filled()
    (problem,) = again(data=str(paths.data() / "models" / "x"))
    assert "within the old folder" in problem


def test_the_command_line_moves_nothing(tmp_path: Path) -> None:
    filled()
    assert again(data=str(tmp_path / "there")) == []
    paths.use_data(None)
    moving.use_known()
    assert paths.data() == tmp_path / "there"
    assert paths.models() == tmp_path / "there" / "models"
