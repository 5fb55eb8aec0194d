"""`dev.py package`: which steps there are, each recorded instead of done."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import dev


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    steps: list[str] = []
    environment = tmp_path / "env"
    lib = environment / "lib/llama_cpp/lib"
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "engine.whl").touch()
    (tmp_path / "vulkan").mkdir()
    (tmp_path / "vulkan/libggml-vulkan.so").touch()
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setattr(dev, "system_packages", lambda: None)
    monkeypatch.setattr(dev, "optional_packages", lambda signs: None)
    monkeypatch.setattr(dev, "vulkan_packages", lambda drivers: None)
    monkeypatch.setattr(dev, "package_env", lambda: environment)
    monkeypatch.setattr(dev, "project_version", lambda: "1.2")
    monkeypatch.setattr(dev, "commit_time", lambda: 7)
    monkeypatch.setattr(dev, "runs_on", lambda wheel: "")

    def native(*options: str) -> Path:
        steps.append(f"native {' '.join(options)}")
        vulkan = tmp_path / "vulkan/libggml-vulkan.so"
        return vulkan if "--vulkan" in options else wheels / "engine.whl"

    def pip(venv: Path, *args: object) -> None:
        assert venv == environment
        steps.append(f"pip {args[0]}")
        if args[0] == "wheel":
            (tmp_path / "dist/slipstream-1.2-py3-none-any.whl").touch()
        else:
            lib.mkdir(parents=True)

    def call(command: list[object], *, env: dict[str, str]) -> int:
        assert env["PYTHONPATH"] == str(tmp_path / "installers")
        backends = sorted(file.name for file in lib.glob("backends/*"))
        options = [str(part) for part in command if part != tmp_path / "dist"][1:]
        steps.append(" ".join([*options[:3], *options[options.index("--epoch") :], *backends]))
        return 0

    monkeypatch.setattr(dev, "native", native)
    monkeypatch.setattr(dev, "pip", pip)
    monkeypatch.setattr(dev, "call", call)
    monkeypatch.setattr(dev, "cache_dir", lambda: Path("cache"))
    return steps


def packaged(**options: Any) -> int:
    known: dict[str, Any] = {"cuda": None, "engine": None, "wheels": False, "options": ["--quick"]}
    return dev.package(dev.ROOT / "dist", **(known | options))


MADE = f"-P -m slipstream_package --epoch 7 --work {Path('cache/package')} --quick"
OURS = f"{MADE} --compiled-in cache"  # no file may name the folder that the engine was made in


def test_wheels_then_the_app_with_the_vulkan_backend(steps: list[str]) -> None:
    assert packaged() == 0
    assert steps == [
        "native --portable",
        "pip wheel",
        "pip install",
        "native --vulkan",
        f"{OURS} libggml-vulkan.so",
    ]


def test_wheels_alone(steps: list[str]) -> None:
    assert packaged(wheels=True) == 0
    assert steps == ["native --portable", "pip wheel"]


def test_an_engine_that_is_there(steps: list[str], tmp_path: Path) -> None:
    assert packaged(engine=tmp_path / "wheels/engine.whl") == 0
    assert "native --portable" not in steps
    assert steps[-1] == f"{MADE} libggml-vulkan.so"
    assert (tmp_path / "dist/engine.whl").is_file()


def test_without_vulkan_it_is_made_only_where_that_is_said(
    steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(drivers: bool) -> None:
        raise dev.Unavailable("this system lacks: glslc")

    monkeypatch.setattr(dev, "vulkan_packages", lacks)
    with pytest.raises(dev.Failed, match=r"(?s)glslc.*--no-vulkan"):
        packaged()
    assert steps == []


@pytest.mark.parametrize("asked", ["commit_time", "optional_packages"])
def test_what_is_lacking_is_told_before_anything_is_built(
    asked: str, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(*_: object) -> int:
        raise dev.Failed("binutils, or a commit")

    monkeypatch.setattr(dev.sys, "platform", "linux")
    monkeypatch.setattr(dev, asked, lacks)
    with pytest.raises(dev.Failed, match="binutils"):
        packaged()
    assert steps == []
    assert packaged(wheels=True) == 0  # they need none of it


def test_it_is_made_without_vulkan(steps: list[str]) -> None:
    assert packaged(vulkan=False) == 0
    assert steps[-1] == OURS
    assert "native --vulkan" not in steps


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_where_vulkan_is_no_library_of_its_own_it_is_made_without(
    system: str, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev.sys, "platform", system)
    assert packaged() == 0
    assert steps[-1] == OURS


def test_a_time_that_was_given_is_that_of_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "5")
    assert dev.commit_time() == 5


def test_without_one_it_is_the_commits_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    for name in ("GIT_DIR", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    with pytest.raises(dev.Failed, match="SOURCE_DATE_EPOCH"):
        dev.commit_time()
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    when = {**os.environ, "GIT_COMMITTER_DATE": "@1234567890 +0000"}
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    commit = [*git, "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(commit, cwd=tmp_path, env=when, check=True)
    assert dev.commit_time() == 1234567890


def test_a_library_that_nm_cannot_read_is_no_library_without_symbols(tmp_path: Path) -> None:
    library = tmp_path / "libx.so"
    library.write_text("no library")
    with pytest.raises(dev.Failed, match=r"libx\.so"):
        dev._exports(library)
