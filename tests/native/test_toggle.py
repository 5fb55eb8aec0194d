"""From a fresh home to a switch between CPU and GPU that works: the real window on lavapipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import dev
from app.conversation import End
from tests.conftest import ROOT

NAMED = "GGML_VK_VISIBLE_DEVICES"


@pytest.fixture
def folder(lavapipe: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `dev.py` puts the backends that it sees a use for here."""
    monkeypatch.setattr(dev, "VENV", tmp_path / "venv")
    monkeypatch.setattr(dev, "nvidia_card", lambda: False)  # whose backend takes an hour to build
    lib = tmp_path / "venv" / "llama_cpp" / "lib"
    lib.mkdir(parents=True)
    assert dev.backends(None) == 0
    found = lib / "backends"
    assert [file.name for file in found.iterdir()] == [Path(lavapipe["GGML_BACKEND_PATH"]).name]
    return found


def window(folder: Path, *script: str, named: bool = True) -> dict[str, Any]:
    """What tests/ui/toggle.py saw, in a fresh home."""
    env = {name: value for name, value in os.environ.items() if name != NAMED}
    env |= {"SLIPSTREAM_HOME": str(folder.parents[3] / "own"), "QT_QPA_PLATFORM": "offscreen"}
    if named:
        env[NAMED] = "0"
    command = [sys.executable, "-m", "tests.ui.toggle", folder, *script]
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-6000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_named_software_renderer_can_be_switched_to(folder: Path) -> None:
    seen = window(folder)
    assert seen["started_on"] == "cpu"  # it is slower than the CPU: nothing for a default
    assert seen["offered"]
    assert "llvmpipe" in seen["tip"]
    places = [(kind, name) for kind, name, _ in seen["answers"]]
    assert places == [("gpu", "Vulkan0"), ("cpu", "CPU"), ("gpu", "Vulkan0")]
    [text] = {text for _, _, text in seen["answers"]}
    assert text


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_it_can_be_switched_at_any_moment(folder: Path) -> None:
    seen = window(folder, "moments")
    there, here = seen["went_on"]
    assert there == here != ""  # on either it was read again from its beginning
    end, part = seen["broken_off"]
    assert end == End.RELOADED.value
    assert part
    assert seen["anew"].startswith(part)
    assert seen["notices"] == []
    # The first switches leave what is loaded once: drivers, shaders. After each of the others some
    # 30 MiB more or less are there by chance, so the one in the middle of a half is compared.
    after = seen["resident"][1:]
    half = len(after) // 2
    assert half >= 5
    assert median(after[half:]) < 1.05 * median(after[:half])


@pytest.mark.timeout(300)
def test_a_software_renderer_that_nobody_named_is_grey_and_says_why(folder: Path) -> None:
    seen = window(folder, named=False)
    assert seen["started_on"] == "cpu"
    assert not seen["offered"]
    assert "computes on the processor" in seen["tip"]
    assert seen["answers"] == []
