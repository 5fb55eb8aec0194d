"""What a machine lacks for Vulkan costs that choice alone, with the reason: the installed app."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.binding import library_path
from tests.conftest import ROOT

NOWHERE = {"VK_ICD_FILENAMES": "/nonexistent", "VK_DRIVER_FILES": "/nonexistent"}


@pytest.fixture
def installed(tmp_path: Path, lavapipe: dict[str, str]) -> Path:
    """A copy of the engine's package with the Vulkan backend; gives the backend."""
    package = library_path().parent.parent
    lib = tmp_path / "llama_cpp" / "lib"
    shutil.copytree(package / "lib", lib, ignore=shutil.ignore_patterns("backends"))
    shutil.copy2(package / "__init__.py", tmp_path / "llama_cpp")
    (lib / "backends").mkdir()
    return Path(shutil.copy2(lavapipe["GGML_BACKEND_PATH"], lib / "backends"))


def rows(library: Path, **more: str) -> list[dict[str, Any]]:
    """What `slipstream devices --json` lists."""
    package = library.parents[3]
    env = {name: value for name, value in os.environ.items() if not name.startswith("GGML_")}
    env |= {"PYTHONPATH": str(package), "SLIPSTREAM_HOME": str(package / "home"), **more}
    command = [sys.executable, "-m", "app", "devices", "--json"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    listed: list[dict[str, Any]] = json.loads(done.stdout)["devices"]
    assert listed[0]["kind"] == "cpu"
    assert listed[0]["usable"]
    return listed[1:]


def test_a_software_renderer_is_usable_only_by_its_name(installed: Path) -> None:
    [hidden] = rows(installed)
    assert not hidden["usable"]
    assert "computes on the processor" in hidden["reason"]
    [named] = rows(installed, GGML_VK_VISIBLE_DEVICES="0")
    assert named["usable"]
    assert named["name"] == hidden["name"] == "Vulkan0"


def test_without_a_driver(installed: Path) -> None:
    [row] = rows(installed, **NOWHERE)
    assert not row["usable"]
    assert row["backend"] == "vulkan"
    assert "driver" in row["reason"]


def test_without_the_loader(installed: Path) -> None:
    """As where it is not installed: the library links to one of another name."""
    content = installed.read_bytes()
    installed.write_bytes(content.replace(b"libvulkan.so.1", b"libvulkan.so.0"))
    [row] = rows(installed)
    assert "libvulkan.so.0: cannot open" in row["reason"]


def test_a_library_that_is_cut_off(installed: Path) -> None:
    content = installed.read_bytes()
    installed.write_bytes(content[: len(content) // 2])
    [row] = rows(installed)
    assert not row["usable"]
    assert row["reason"]


def test_a_library_that_was_deleted(installed: Path) -> None:
    assert rows(installed)
    installed.unlink()
    [row] = rows(installed)
    assert row["reason"] == "This build has no GPU backend."
