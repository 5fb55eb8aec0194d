"""Told to end, it ends: at once, with status 0, and with what came of an answer kept.

The real window with the built-in guide, as a process of its own. (That closing and Ctrl+Q do the
same is in tests/ui/window and tests/ui/desktop; jobs that are ended, in tests/job.)
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from app.conversation import End
from app.history import History
from tests.ui.start import STEPS


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guide is converted by the first one that loads it."""
    return tmp_path_factory.mktemp("ending")


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal there")
@pytest.mark.parametrize("step", STEPS)
def test_a_signal_at_any_moment(home: Path, step: str) -> None:
    environment = {**os.environ, "SLIPSTREAM_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-m", "tests.ui.start", "--one", "stay"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(step):
                break
        time.sleep(random.Random(step).uniform(0, 0.1))
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(60) == 0
    with closing(History(home / "data" / "chats.db")) as history:
        opened = history.open().result()
        assert opened.problem is None
        if step != "first text":
            return
        chat, lost = history.load(opened.chats[0].id).result()
    assert chat is not None
    assert not lost
    answer = chat.last_answer
    assert answer is not None
    assert answer.text
    assert answer.end in (End.CLOSED, End.DONE)
