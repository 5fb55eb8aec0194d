"""Backends in libraries of their own: what is wrong with one takes away that one, and says why."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from app import paths
from app.binding import backends, devices, trials
from app.binding.backends import Trial, backend_name, try_out
from app.binding.records import DeviceInfo
from app.errors import DeviceError

AT_LOAD = (
    "#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) static void f(void)"
)
SOURCES = {
    "dies": f"{AT_LOAD} {{ __builtin_trap(); }}",
    "leaves": f"{AT_LOAD} {{ _Exit(3); }}",
    "hangs": f"{AT_LOAD} {{ pause(); }}",
    "older": "static int reg[64] = {1}; void * ggml_backend_init(void) { return reg; }",
    "other": "int ggml_backend_of_another_program(void) { return 1; }",
    "lacks": "int no_such_function(void); int call(void) { return no_such_function(); }",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a library of each kind."""
    folder = tmp_path_factory.mktemp("built")
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "the set-up needs one too"
    for name, source in SOURCES.items():
        (folder / f"{name}.c").write_text(source, encoding="utf-8")
        library = folder / f"libggml-{name}.so"
        command = [compiler, "-shared", "-fPIC", "-Wl,-z,now", "-o", library, folder / f"{name}.c"]
        subprocess.run(command, check=True)
    whole = (folder / "libggml-other.so").read_bytes()
    (folder / "libggml-cut.so").write_bytes(whole[: len(whole) // 2])
    (folder / "libggml-empty.so").write_bytes(b"")
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of backends, empty; nothing is remembered."""
    monkeypatch.setattr(backends, "backends_folder", lambda: tmp_path / "backends")
    monkeypatch.setattr(paths, "cache", lambda: tmp_path / "cache")
    (tmp_path / "backends").mkdir()
    return tmp_path / "backends"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("dies", r"ended the process that tried it \(SIG"),
        ("leaves", r"ended the process that tried it \(exit status 3\)"),
        ("older", "no backend of this version"),
        ("other", "no backend of this version"),
        ("lacks", "no_such_function"),
        ("cut", "cannot be loaded|ended the process"),
        ("empty", "cannot be loaded"),
    ],
)
def test_a_bad_one_costs_its_own_row(built: Path, folder: Path, name: str, reason: str) -> None:
    shutil.copy2(built / f"libggml-{name}.so", folder)
    cpu, *others = devices()
    assert cpu.usable
    (row,) = [d for d in others if d.backend == name]
    assert not row.usable
    assert re.search(reason, row.reason)


def test_one_that_keeps_silent_is_given_up(
    built: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "_SECONDS", 5.0)
    trial = try_out(built / "libggml-hangs.so")
    assert not trial.usable
    assert not trial.answered
    assert "no answer within 5 seconds" in trial.devices[0].reason


def test_an_answer_is_remembered_and_a_failure_is_not(
    built: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a failed one lacks of the system can come later."""
    for name in ("other", "dies"):
        shutil.copy2(built / f"libggml-{name}.so", folder)
    (folder / "libggml-soft.so").touch()
    soft = DeviceInfo("Soft0", "A renderer", "gpu", 0, 0, False, "It is slow.", "soft")
    tried: list[str] = []

    def watched(path: Path) -> Trial:
        tried.append(backend_name(path))
        return Trial(False, (soft,)) if tried[-1] == "soft" else try_out(path)

    module = import_module("app.binding.devices")
    monkeypatch.setattr(module, "try_out", watched)
    first = devices()
    assert tried == ["dies", "other", "soft"]
    monkeypatch.setattr(module, "_tried", {})  # as in the next process
    assert [(d.backend, d.reason) for d in devices()] == [(d.backend, d.reason) for d in first]
    assert tried == ["dies", "other", "soft", "dies", "other"]


def test_variants_of_the_cpu_are_the_engines_own_to_load(built: Path, folder: Path) -> None:
    for name in ("cpu-haswell", "other"):
        shutil.copy2(built / "libggml-dies.so", folder / f"libggml-{name}.so")
    assert [backend_name(path) for path in backends.backend_libraries()] == ["other"]


def test_a_file_that_changed_is_tried_again(built: Path, folder: Path) -> None:
    library = folder / "libggml-gpu.so"
    shutil.copy2(built / "libggml-other.so", library)
    assert "no backend" in devices()[-1].reason
    library.write_bytes(b"")
    assert "cannot be loaded" in devices()[-1].reason
    library.unlink()
    assert devices()[-1].reason == "This build has no GPU backend."


@pytest.mark.parametrize("kept", ["", "[]", "{", '{"x": 1}', '{"x": {"usable": true}}'])
def test_a_damaged_memory_is_no_answer(folder: Path, kept: str) -> None:
    paths.cache().mkdir()
    (paths.cache() / "backends.json").write_text(kept, encoding="utf-8")
    assert trials.remembered("x") is None
    trial = Trial(False, (DeviceInfo("A", "B", "gpu", 0, 0, False, "C", "d"),))
    trials.remember("x", trial)
    assert trials.remembered("x") == trial
    trials.forget("x")
    assert trials.remembered("x") is None


def test_what_is_to_be_done_where_a_driver_does_not_start(
    built: Path,
) -> None:
    with pytest.raises(DeviceError) as raised:
        backends.load_backend.__wrapped__(built / "libggml-other.so")
    assert raised.value.remedy
    assert raised.value.remedy.startswith("Update the graphics card's driver. ")
