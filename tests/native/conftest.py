"""The programs of the patched tree, and the Vulkan backend where this machine can have it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from app.library import Library
from tests.conftest import NotHere, dev_native

REQUIRED = "SLIPSTREAM_REQUIRE_VULKAN"  # set where a skipped test would hide a fault: in CI

RunProgram = Callable[..., str]


@pytest.fixture(scope="session")
def program(tools: Path) -> RunProgram:
    """`program("test-x", "argument", **environment)` must end well; gives what it printed."""

    def run(name: str, *args: object, **env: str) -> str:
        done = subprocess.run(
            [str(tools / name), *map(str, args)],
            # Threads that spin while they wait make minutes of seconds on a busy machine.
            env={**os.environ, "OMP_WAIT_POLICY": "passive", **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            pytest.fail(f"{name} ended with {done.returncode}:\n{done.stdout[-6000:]}")
        return done.stdout

    return run


@pytest.fixture(scope="session")
def lavapipe() -> dict[str, str]:
    """The environment in which llama.cpp sees one more device, Mesa's software renderer."""
    try:
        library = dev_native("--vulkan")
    except NotHere as exc:
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, and there is no Vulkan backend:\n{exc}")
        pytest.skip(f"no Vulkan backend: {exc}")
    # Devices of the kind "CPU" are taken only when they are named.
    return {"GGML_BACKEND_PATH": str(library), "GGML_VK_VISIBLE_DEVICES": "0"}


@pytest.fixture(scope="session")
def demo_target() -> Path:
    return Library.of_user().open("demo").target


@pytest.fixture(scope="session")
def demo_draft() -> Path:
    draft = Library.of_user().open("demo").draft
    assert draft
    return draft
