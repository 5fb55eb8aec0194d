"""Chats and models go where the user wants them, whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from filelock import FileLock

from app import moving, paths
from app.job.journal import FOLDER
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


@pytest.mark.parametrize(
    "text", ["", "[]", '{"data": 7}', '{"data": "there", "left": "here"}', "[" * 100_000]
)
def test_where_that_is_not_told_any_more_it_is_where_it_is_by_default(text: str) -> None:
    filled()
    (paths.config() / "folders.json").parent.mkdir(parents=True)
    (paths.config() / "folders.json").write_text(text)
    assert again() == []
    assert (paths.data() / "chats.sqlite").is_file()


def test_a_place_in_the_users_home_is_the_same_wherever_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled()
    monkeypatch.setenv("HOME" if os.name == "posix" else "USERPROFILE", str(tmp_path))
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        monkeypatch.chdir(folder)
        assert again(data="~/Chats") == []
        assert paths.data() == tmp_path / "Chats"
        assert (paths.data() / "chats.sqlite").is_file()
        assert moving.is_there()


@pytest.mark.parametrize("data", ["Chats", "./Chats", "~nobody-of-this-name/Chats"])
def test_a_place_that_is_no_whole_path_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    filled()
    monkeypatch.chdir(tmp_path)
    before = paths.data()
    (problem,) = again(data=data)
    assert f"cannot be `{data}`" in problem
    assert "write its whole path" in problem
    assert paths.data() == before
    assert (paths.data() / "chats.sqlite").is_file()
    assert [entry.name for entry in tmp_path.iterdir()] == ["home"]


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


@pytest.fixture(params=["as on macOS", "as on Windows", "one for all", "within"])
def systems(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The system's folder for data, where it is also that of others or holds theirs."""
    place = tmp_path / "system" / "slipstream"
    config, cache = {
        "as on macOS": (place, tmp_path / "caches"),
        "as on Windows": (place, place / "Cache"),
        "one for all": (place, place),
        "within": (place / "config" / "slipstream", place / "cache" / "slipstream"),
    }[request.param]
    dirs = SimpleNamespace(
        user_data_path=place,
        user_config_path=config,
        user_state_path=config,
        user_cache_path=cache,
    )
    monkeypatch.delenv(paths.HOME_VARIABLE)
    monkeypatch.setattr(paths, "_dirs", dirs)
    return place


def test_what_others_have_in_the_systems_folder_stays(systems: Path, tmp_path: Path) -> None:
    filled()
    theirs = {
        paths.settings_file(),
        paths.config() / "settings.toml.broken",
        paths.presets_file(),
        paths.log_file(),
        paths.state() / "slipstream.log.1",
        paths.state() / "window.lock",
        paths.state() / "models.json",
        paths.cache() / "speeds.json",
    }
    for file in theirs:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
    there = str(tmp_path / "there")
    for _ in range(2):
        assert again(data=there) == []
        assert contents(Path(there)).keys() == {"chats.sqlite", "models/mine/target.gguf"}
        assert not {"chats.sqlite", "models"} & {entry.name for entry in systems.iterdir()}
        assert all(file.read_text() == file.name for file in theirs)
    assert again() == []
    assert paths.data() == systems
    assert (systems / "chats.sqlite").is_file()
    assert (systems / "models" / "mine" / "target.gguf").is_file()
    assert all(file.read_text() == file.name for file in theirs)
    assert not contents(Path(there))


def test_what_moved_along_by_mistake_bars_no_way_back(systems: Path, tmp_path: Path) -> None:
    """Settings beside the data that the system's folder has too."""
    filled()
    assert again(data=str(tmp_path / "there")) == []
    paths.settings_file().parent.mkdir(parents=True, exist_ok=True)
    paths.settings_file().write_text("new")
    name = paths.settings_file().relative_to(systems).parts[0]
    (tmp_path / "there" / name).write_text("old")
    assert again() == []
    assert (systems / "chats.sqlite").is_file()
    assert paths.settings_file().read_text() == "new"


def test_what_is_there_already_is_not_written_over(tmp_path: Path) -> None:
    filled()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "chats.sqlite").write_text("others")
    (problem,) = again(data=str(tmp_path / "there"))
    assert "`chats.sqlite` is there already" in problem
    assert (tmp_path / "there" / "chats.sqlite").read_text() == "others"
    assert (paths.data() / "chats.sqlite").read_text() == "chats"
    assert paths.data() == tmp_path / "home" / "data"


def contents(place: Path) -> dict[str, str]:
    """Of all files, by name; hidden ones too."""
    files = (file for file in place.rglob("*") if file.is_file())
    return {file.relative_to(place).as_posix(): file.read_text() for file in files}


WHOLE = {
    "chats.db": "chats",
    "models/mine/draft.gguf": "more",
    "models/mine/target.gguf": "weights",
}


@pytest.fixture(params=["links", "copies"])
def full_home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something to move; to another disk too, for which a system knows no links."""
    for name, text in WHOLE.items():
        (paths.data() / name).parent.mkdir(parents=True, exist_ok=True)
        (paths.data() / name).write_text(text)

    def no_link(*_: object) -> None:
        raise OSError(errno.EXDEV, "another disk")

    if request.param == "copies":
        monkeypatch.setattr(os, "link", no_link)


_WRITES = {"os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.copyfile"}


def _in_a_child(place: Path, at: int, then: Callable[[], None]) -> bool:
    """A start in a process of its own, in which `then` happens before its write number `at`.
    False where it has fewer."""
    if (child := os.fork()) == 0:
        count = 0

        def hook(event: str, args: tuple[Any, ...]) -> None:
            nonlocal count
            opened = event == "open" and isinstance(args[2], int) and args[2] & os.O_ACCMODE
            if opened or event in _WRITES:
                count += 1
                if count == at:
                    then()

        try:
            sys.addaudithook(hook)
            again(data=str(place))
        finally:
            os._exit(0 if count < at else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


def _killed() -> None:
    os._exit(137)


def _full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("then", [_killed, _full])
@pytest.mark.usefixtures("full_home")
def test_stopped_anywhere_all_is_in_one_place_and_the_next_start_goes_on(
    tmp_path: Path, then: Callable[[], None]
) -> None:
    old, at = paths.data(), 1
    while _in_a_child(new := tmp_path / f"new{at}", at, then):
        paths.use_data(None)
        moving.use_known()
        assert contents(paths.data()).items() >= WHOLE.items(), at
        assert again(data=str(new)) == [], at
        assert contents(new) == WHOLE, at
        assert not contents(old), at
        old, at = new, at + 1
    assert at > 15


@pytest.mark.usefixtures("full_home")
def test_a_disk_that_fills_leaves_all_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, into: Path) -> None:
        if source.name == "target.gguf":
            into.write_text("wei")
            raise OSError(errno.ENOSPC, "No space left on device")
        into.write_text(source.read_text())

    old, there = paths.data(), tmp_path / "there"
    monkeypatch.setattr(os, "link", lambda *_: _full())
    monkeypatch.setattr(moving.shutil, "copyfile", full)
    (problem,) = again(data=str(there))
    assert "to `" + str(there) + "`: No space left on device. It is used as it is." in problem
    assert "Choose a folder" in problem
    assert paths.data() == old
    assert contents(old) == WHOLE
    assert not contents(there)


@pytest.mark.usefixtures("full_home")
def test_where_it_cannot_be_kept_nothing_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, real = paths.data(), moving.replace_text

    def no_folders(path: Path, text: str) -> None:
        if path.name == "folders.json":
            _full()
        real(path, text)

    monkeypatch.setattr(moving, "replace_text", no_folders)
    (problem,) = again(data=str(tmp_path / "there"))
    assert "No space left on device" in problem
    assert paths.data() == old
    assert contents(old) == WHOLE
    assert not contents(tmp_path / "there")


@pytest.mark.usefixtures("full_home")
def test_a_copy_that_cannot_be_removed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, real = paths.data(), moving._remove

    def kept(entry: Path) -> None:
        if entry.is_relative_to(old):
            raise PermissionError(errno.EACCES, "Permission denied")
        real(entry)

    with monkeypatch.context() as patch:
        patch.setattr(moving, "_remove", kept)
        (problem,) = again(data=str(tmp_path / "there"))
    assert f"their copy in `{old}` could not be removed: Permission denied" in problem
    assert contents(paths.data()) == WHOLE
    assert again(data=str(tmp_path / "there")) == []
    assert not contents(old)


def test_links_go_as_links(tmp_path: Path) -> None:
    filled()
    (paths.models() / "other").symlink_to("mine")
    assert again(data=str(tmp_path / "there")) == []
    assert (paths.models() / "other").readlink() == Path("mine")


@pytest.mark.parametrize("relative", [True, False])
def test_links_lead_where_they_led(tmp_path: Path, relative: bool) -> None:
    """Out of what moves to what stays, and within it to what comes along."""
    filled()
    outside = tmp_path / "drive" / "large"
    outside.mkdir(parents=True)
    (outside / "target.gguf").touch()
    for name, place in {"far": outside, "near": paths.models() / "mine"}.items():
        link = paths.models() / name
        link.symlink_to(os.path.relpath(place, link.parent) if relative else place)
    assert again(data=str(tmp_path / "deep" / "er" / "there")) == []
    assert (paths.models() / "far").samefile(outside)
    assert (paths.models() / "near").samefile(paths.models() / "mine")


def test_names_in_the_new_place_lead_nowhere_else(tmp_path: Path) -> None:
    """They were written down by a move that was killed, or by whoever made that folder."""
    filled()
    there, other = tmp_path / "there", tmp_path / "other"
    other.mkdir()
    (there / ".slipstream-moving" / "parts").mkdir(parents=True)
    names = ["../other", str(other), "..", ""]
    (there / ".slipstream-moving" / "names.json").write_text(json.dumps(names))
    again(data=str(there))
    assert other.is_dir()
    assert (there / "chats.sqlite").read_text() == "chats"


def test_a_drive_that_is_not_there_is_told_and_nothing_is_kept_in_its_place(
    tmp_path: Path,
) -> None:
    drive = tmp_path / "drive"
    assert again(data=str(drive)) == []
    assert moving.is_there()
    drive.rename(tmp_path / "taken out")
    for there in (False, True):  # the folder that it is mounted at may stay
        if there:
            drive.mkdir()
        for wanted in (str(drive), str(tmp_path / "another"), ""):
            (problem,) = again(data=wanted)
            assert f"`{drive}`" in problem
            assert "Connect its drive" in problem
            assert not moving.is_there()
            assert paths.data() == drive
    drive.rmdir()
    (tmp_path / "taken out").rename(drive)
    assert again(data=str(drive)) == []
    assert moving.is_there()


@pytest.mark.parametrize("folder", ["", "other/models"])
def test_nothing_moves_while_a_model_is_being_got_there(tmp_path: Path, folder: str) -> None:
    filled()
    old, there = paths.data(), tmp_path / "there"
    work = Library.of_user(folder).root / FOLDER / "large"
    work.mkdir(parents=True)
    with FileLock(work / "lock", timeout=0):
        (problem,) = again(data=str(there), models_folder=folder)
        assert "another Slipstream is getting `large` there" in problem
        assert "Wait until that has ended" in problem
        assert paths.data() == old
        assert contents(old).keys() >= {"chats.sqlite", "models/mine/target.gguf"}
        assert not there.exists()
    assert again(data=str(there), models_folder=folder) == []
    assert contents(there).keys() >= {"chats.sqlite", "models/mine/target.gguf"}


def test_what_is_got_into_a_folder_elsewhere_keeps_nothing_from_moving(tmp_path: Path) -> None:
    filled()
    work = tmp_path / "drive" / FOLDER / "large"
    work.mkdir(parents=True)
    with FileLock(work / "lock", timeout=0):
        assert again(data=str(tmp_path / "there"), models_folder=str(tmp_path / "drive")) == []
    assert paths.data() == tmp_path / "there"


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
