"""`dev.py package`: which steps there are, each recorded instead of done."""

from __future__ import annotations

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
    (wheels / "libggml-vulkan.so").touch()
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
        return wheels / ("libggml-vulkan.so" if "--vulkan" in options else "engine.whl")

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
    return dev.package(**(known | options))


MADE = f"-P -m slipstream_package --epoch 7 --work {Path('cache/package')} --quick"


def test_wheels_then_the_app_with_the_vulkan_backend(steps: list[str]) -> None:
    assert packaged() == 0
    assert steps == [
        "native --portable",
        "pip wheel",
        "pip install",
        "native --vulkan",
        f"{MADE} libggml-vulkan.so",
    ]


def test_wheels_alone(steps: list[str]) -> None:
    assert packaged(wheels=True) == 0
    assert steps == ["native --portable", "pip wheel"]


def test_an_engine_that_is_there(steps: list[str], tmp_path: Path) -> None:
    assert packaged(engine=tmp_path / "wheels/engine.whl") == 0
    assert "native --portable" not in steps
    assert (tmp_path / "dist/engine.whl").is_file()


def test_without_vulkan_it_is_made_all_the_same(
    steps: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def lacks(drivers: bool) -> None:
        raise dev.Unavailable("this system lacks: glslc")

    monkeypatch.setattr(dev, "vulkan_packages", lacks)
    assert packaged() == 0
    assert steps[-1] == MADE
    assert "without the Vulkan backend: this system lacks: glslc" in capfd.readouterr().err


def test_a_time_that_was_given_is_that_of_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "5")
    assert dev.commit_time() == 5
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert dev.commit_time() >= 0
