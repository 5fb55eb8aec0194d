"""The real engine beside two busy loops: no ratio that is not so, and no reason that is none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.engine import Engine, Figures
from app.library import Library
from app.settings import Settings
from app.ui.look.theme import Theme
from app.ui.look.why import reasons
from app.ui.window.main_window import MainWindow
from tests.ui.shots import answered

_TRUE_HERE = (
    "The machine was busy.",
    "The machine became",
    "It waited",
    "Much of the time",
    "Nothing was drafted: going by the rounds before",
    "Something held up the plain steps",
)
"""What may be told of short answers of a good pair on the CPU, beside others' work.

The last one is: the pair's second answer begins with a draft that is refused whole, and where a
round takes as long as five plain steps, the governor tries the next one after 90 of them.
"""


@pytest.fixture
def busy() -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.usefixtures("busy")
def test_meters_beside_busy_loops(qtbot: QtBot, look: Theme) -> None:
    settings = Settings(backend="cpu", threads=1)
    window = MainWindow(Engine(), Library.of_user(), settings, lambda _: None, look)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: window.meters.plain_tokens_per_s is not None, timeout=120_000)
    for question in ("What is DFlash?", "Count to twenty"):
        window.controller.ask(question)
        qtbot.waitUntil(lambda: answered(window), timeout=120_000)
        answer = window.controller.current.last_answer
        assert answer is not None
        figures = answer.figures
        assert isinstance(figures, Figures)
        # A round costs no less than a plain step; nor many times what it does on a machine of
        # its own.
        gain, length = window.meters.speedup, figures.totals.mean_accepted_length
        assert gain == figures.speedup
        assert gain.why or (gain.times and length and 0.2 < gain.times <= length + 1e-6)
        for reason in reasons(figures):
            assert reason.startswith(_TRUE_HERE), reason
    window.close()
