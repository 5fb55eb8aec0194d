"""Work in a process of its own: what comes of it when somebody stops it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from app.convert.apart import run_apart
from app.convert.watch import OnBytes
from app.jobs import CancelToken


def at_once(item: int, progress: OnBytes | None, cancelled: CancelToken | None) -> int:
    assert progress is not None
    progress(1, 1, "all")
    return item


def in_a_moment(item: Path, progress: OnBytes | None, cancelled: CancelToken | None) -> str:
    assert progress is not None
    progress(0, 1, "begun")
    while not item.exists():
        time.sleep(0.01)
    return "done"


def test_too_late_to_be_cancelled() -> None:
    """It has ended, and so nothing listens any more."""
    token = CancelToken()

    def cancel(*_: object) -> None:
        (child,) = multiprocessing.active_children()
        child.join(20)
        token.cancel()

    assert run_apart(at_once, 7, cancel, token, ()) == 7


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT to send")
def test_ctrl_c_is_for_who_waits(tmp_path: Path) -> None:
    """A terminal sends it to both."""

    def interrupt(done: int, *_: object) -> None:
        (child,) = multiprocessing.active_children()
        assert child.pid
        os.kill(child.pid, signal.SIGINT)
        (tmp_path / "go on").touch()

    assert run_apart(in_a_moment, tmp_path / "go on", interrupt, None, ()) == "done"
