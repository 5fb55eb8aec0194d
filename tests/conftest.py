"""What no test may leave behind: a thread, an error in the log, a file in the user's folders.

(An unexpected warning fails as well: `filterwarnings` in pyproject.toml.)
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from slipstream_build.errors import UNAVAILABLE

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

# The same examples each time: a search by chance is somebody's wish, not a run's fate
# (CONTRIBUTING.md, `--hypothesis-profile`).
settings.register_profile("suite", derandomize=True, deadline=None)
settings.load_profile("suite")

ROOT = Path(__file__).resolve().parents[1]
GRACE_S = 3.0  # a thread that was told to stop may need a moment


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Settings, models and conversations of the test run, never the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLIPSTREAM_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + GRACE_S
    while left := [t for t in threading.enumerate() if t not in before and not t.daemon]:
        if time.monotonic() > deadline:
            pytest.fail(f"threads left running: {', '.join(t.name for t in left)}")
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def _no_stray_error(request: pytest.FixtureRequest) -> Iterator[None]:
    """An error in the log fails the test, unless the test asks for `caplog` and looks itself."""
    seen: list[logging.LogRecord] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = seen.append  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    yield
    logging.getLogger().removeHandler(handler)
    if seen and "caplog" not in request.fixturenames:
        pytest.fail("logged: " + "; ".join(f"{r.name}: {r.getMessage()}" for r in seen))


class NotHere(Exception):
    """What was asked for cannot be built on this machine; the text says why."""


def dev_native(*options: str) -> Path:
    """What `dev.py native` prints: built now, or long ago."""
    command = [sys.executable, "dev.py", "native", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == UNAVAILABLE:
        raise NotHere(done.stderr.strip()[-2000:])
    if done.returncode or not done.stdout.strip():
        pytest.fail(f"`dev.py native {' '.join(options)}` failed:\n{done.stderr[-2000:]}")
    return Path(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="session")
def llama_source() -> Path:
    """The llama.cpp tree with `convert_hf_to_gguf.py`. Without it nothing here proves anything."""
    named = os.environ.get("SLIPSTREAM_LLAMA_SOURCE")
    place = Path(named) if named else dev_native("--source")
    for tree in (place, place / "vendor" / "llama.cpp"):
        if (tree / "convert_hf_to_gguf.py").is_file():
            return tree
    pytest.fail(f"`{place}` holds no `convert_hf_to_gguf.py`")


@pytest.fixture(scope="session")
def tools() -> Path:
    """The folder that `dev.py native --tools` makes: in a full run it is there already."""
    named = os.environ.get("SLIPSTREAM_LLAMA_TOOLS")
    return Path(named) if named else dev_native("--tools")
