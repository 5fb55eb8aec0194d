"""From a fresh home to a switch between CPU and GPU that works: the real window on lavapipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

NAMED = "GGML_VK_VISIBLE_DEVICES"


def window(lavapipe: dict[str, str], home: Path, *, named: bool) -> dict[str, Any]:
    """What tests/ui/toggle.py saw."""
    folder = home / "backends"
    folder.mkdir()
    shutil.copy2(lavapipe["GGML_BACKEND_PATH"], folder)
    env = {name: value for name, value in os.environ.items() if name != NAMED}
    env |= {"SLIPSTREAM_HOME": str(home / "own"), "QT_QPA_PLATFORM": "offscreen"}
    if named:
        env[NAMED] = lavapipe[NAMED]
    command = [sys.executable, "-m", "tests.ui.toggle", folder]
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-6000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_named_software_renderer_can_be_switched_to(
    lavapipe: dict[str, str], tmp_path: Path
) -> None:
    seen = window(lavapipe, tmp_path, named=True)
    assert seen["started_on"] == "cpu"  # it is slower than the CPU: nothing for a default
    assert seen["offered"]
    assert "llvmpipe" in seen["tip"]
    places = [(kind, name) for kind, name, _ in seen["answers"]]
    assert places == [("gpu", "Vulkan0"), ("cpu", "CPU"), ("gpu", "Vulkan0")]
    [text] = {text for _, _, text in seen["answers"]}
    assert text


@pytest.mark.timeout(300)
def test_a_software_renderer_that_nobody_named_is_grey_and_says_why(
    lavapipe: dict[str, str], tmp_path: Path
) -> None:
    seen = window(lavapipe, tmp_path, named=False)
    assert seen["started_on"] == "cpu"
    assert not seen["offered"]
    assert "computes on the processor" in seen["tip"]
    assert seen["answers"] == []
