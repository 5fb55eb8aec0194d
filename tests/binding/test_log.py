"""What the native side says goes to the log, and nothing of it to stderr."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from app.binding import NativePair
from app.binding.library import talkative
from app.library import Library
from tests.conftest import ROOT


def test_a_load_is_told_line_by_line(caplog: pytest.LogCaptureFixture) -> None:
    files = Library.of_user().open("demo")
    with caplog.at_level(logging.INFO, logger="app.native"), talkative():
        NativePair(files.target, n_ctx=256, threads=1).close()
    said = [r.getMessage() for r in caplog.records if r.name == "app.native"]
    assert any("n_ctx" in line for line in said)
    assert not any(line.endswith("\n") for line in said)


def test_stderr_stays_empty_and_the_end_is_quiet(tmp_path: Path) -> None:
    """Lines that come while the process ends find no Python any more."""
    program = (
        "import logging; from app.binding import devices\n"
        f"logging.basicConfig(filename={str(tmp_path / 'log')!r}, level=logging.INFO)\n"
        "devices()\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
