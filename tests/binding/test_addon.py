"""A backend from an archive: whole and for this engine, or not loaded at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dev
from app import paths
from app.binding import addon, backends, devices
from app.errors import DeviceError, OutputError

LIBRARY = "libggml-add.so"
# It is loaded, and says that it is no backend: with the rest all is well.
SOURCE = "int ggml_backend_of_another_program(void) { return 1; }"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("built")
    (folder / "add.c").write_text(SOURCE, encoding="utf-8")
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "the set-up needs one too"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", folder / LIBRARY, folder / "add.c"], check=True
    )
    return (folder / LIBRARY).read_bytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of backends, which is not there yet; nothing is remembered."""
    monkeypatch.setattr(backends, "backends_folder", lambda: tmp_path / "backends")
    monkeypatch.setattr(paths, "cache", lambda: tmp_path / "cache")
    return tmp_path / "backends"


Make = Callable[..., Path]


@pytest.fixture
def archive(tmp_path: Path, library: bytes) -> Make:
    """`archive(engine=..., **changed)`: one of a library and what it links to."""

    def make(
        engine: str = "", more: dict[str, bytes] | None = None, place: str = "", **said: Any
    ) -> Path:
        files = {LIBRARY: library, "libcudart.so.13": b"\x7fELF, or so"}
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        manifest = {
            "library": LIBRARY,
            "engine": engine or addon.engine(),
            "architectures": ["86-real"],
            "files": hashes,
            **said,
        }
        made = tmp_path / "add.zip"
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as opened:
            opened.writestr(f"{place}libggml-add.json", json.dumps(manifest))
            for name, content in (files | (more or {})).items():
                opened.writestr(name, content)
        return made

    return make


def reason() -> str:
    """Of the row of the added backend: of all that is listed the one that is not the CPU."""
    [row] = [d for d in devices() if d.backend == "add"]
    assert not row.usable
    return row.reason


def test_what_was_installed_is_loaded(archive: Make, folder: Path) -> None:
    manifest = addon.install(archive(), folder)
    assert manifest.architectures == ("86-real",)
    assert {file.name for file in folder.iterdir()} == {
        LIBRARY,
        "libggml-add.json",
        "libcudart.so.13",
    }
    assert "no backend of this version" in reason()  # as the library itself says when it is loaded


def test_a_newer_archive_takes_the_place_of_the_older(archive: Make, folder: Path) -> None:
    addon.install(archive(), folder)
    (folder / "libcudart.so.13").write_bytes(b"damaged since")
    addon.install(archive(), folder)
    addon.check(folder / LIBRARY)


@pytest.mark.parametrize("name", [LIBRARY, "libcudart.so.13"])
def test_what_was_damaged_since_is_not_loaded(archive: Make, folder: Path, name: str) -> None:
    addon.install(archive(), folder)
    assert "no backend of this version" in reason()
    with (folder / name).open("r+b") as file:
        file.seek(4)
        file.write(b"X")
    assert reason() == f"`{name}` is damaged: its SHA-256 is not what `libggml-add.json` says."
    (folder / name).unlink()
    if name != LIBRARY:
        assert f"`{name}` cannot be read" in reason()


def test_one_for_another_engine_is_refused(archive: Make, folder: Path) -> None:
    with pytest.raises(DeviceError, match="built for another engine: older abi1"):
        addon.install(archive(engine="older abi1"), folder)
    assert not folder.exists()


def test_one_that_the_engine_has_left_behind_is_not_loaded(
    archive: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addon.install(archive(), folder)
    monkeypatch.setattr(addon, "engine", lambda: "newer abi99")
    assert "It was built for another engine" in reason()


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"files": {LIBRARY: "0" * 64, "libcudart.so.13": "0" * 64}}, "is damaged"),
        ({"files": {LIBRARY: "0" * 64}}, "other files than it says"),
        ({"files": {}}, "does not say"),
        ({"files": {"../../" + LIBRARY: "0" * 64}}, "does not say"),
        ({"files": {LIBRARY: "0" * 64, "..": "0" * 64}}, "does not say"),
        ({"files": {LIBRARY: "0" * 64, "": "0" * 64}}, "does not say"),
        ({"place": "in/"}, "does not say"),
        ({"files": []}, "no manifest"),
        ({"library": "libggml-other.so"}, "does not say"),
        ({"more": {"run.py": b"import os"}}, "other files than it says"),
        ({"more": {"../run.py": b"import os"}}, "other files than it says"),
    ],
)
def test_an_archive_that_is_not_what_it_says_leaves_nothing(
    archive: Make, folder: Path, said: dict[str, Any], match: str
) -> None:
    with pytest.raises(DeviceError, match=match):
        addon.install(archive(**said), folder)
    assert not folder.exists() or not list(folder.iterdir())
    assert not (folder.parent / "run.py").exists()


@pytest.mark.parametrize("damage", ["cut", "empty", "other", "secret"])
def test_a_damaged_archive_leaves_nothing(archive: Make, folder: Path, damage: str) -> None:
    made = archive()
    whole = made.read_bytes()
    at = whole.index(b"PK\1\2")  # the first file's entry in the directory
    made.write_bytes(
        {
            "cut": whole[: len(whole) // 2],
            "empty": b"",
            "other": b"no archive" * 99,
            "secret": whole[: at + 8] + bytes([whole[at + 8] | 1]) + whole[at + 9 :],
        }[damage]
    )
    with pytest.raises(DeviceError, match="no whole archive"):
        addon.install(made, folder)
    assert not folder.exists() or not list(folder.iterdir())


def test_a_byte_that_is_wrong_is_found_wherever_it_is(archive: Make, folder: Path) -> None:
    made = archive()
    whole = made.read_bytes()
    packed = range(200, whole.index(b"PK\1\2"), 23)  # behind the manifest's head
    for at in packed:
        made.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with contextlib.suppress(DeviceError):
            addon.install(made, folder)
            addon.check(folder / LIBRARY)  # it was in what nobody reads
            shutil.rmtree(folder)
        assert not folder.exists() or not list(folder.iterdir())


def test_a_folder_that_cannot_be_written_says_so(archive: Make, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be installed"):
        addon.install(archive(), tmp_path / "file" / "backends")


def test_what_is_packed_here_can_be_installed(
    library: bytes, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = tmp_path / "built"
    built.mkdir()
    (built / LIBRARY).write_bytes(library)
    (built / "libcublas.so.13").write_bytes(b"other")
    monkeypatch.setattr(dev, "python_of", lambda venv: sys.executable)
    made = dev.backend_archive(built / LIBRARY, ["86-real", "90-real"], tmp_path)
    assert made.name == "slipstream-add.zip"
    manifest = addon.install(made, folder)
    assert manifest.architectures == ("86-real", "90-real")
    assert set(manifest.files) == {LIBRARY, "libcublas.so.13"}
