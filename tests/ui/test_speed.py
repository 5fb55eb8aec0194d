"""The window never holds its event loop for long, however long the answer is.

The worst gap is told in this thread's own processor time, because on a shared machine a single
turn may wait for anything; so is the 99th percentile, and by the clock as well where a core was
free for the window.
"""

from __future__ import annotations

import base64
import math
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine import Command, Decoded, Event, Script
from app.history import History
from app.ui.window.main_window import MainWindow
from tests.ui.bench_chats import chats_of
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import PacedEngine
from tests.ui.gaps import Gaps, percentile, slowdown
from tests.ui.shots import ANSWER

Ask = Callable[[MainWindow, str], None]


def core_was_free() -> bool:
    """Over the last minute, as far as the system tells; what began since is seen by its weight."""
    cores = os.cpu_count() or 1
    calm = not hasattr(os, "getloadavg") or os.getloadavg()[0] < 0.75 * cores
    return calm and slowdown() < 1.5


def prose(tokens: int) -> str:
    chance = random.Random(3)
    words = "the drafter proposes a block and *the target* verifies it in `one` pass".split()
    parts = []
    for i in range(tokens // 40):
        if i % 12 == 5:
            parts.append("```python\n" + "x = f(1)  # a line\n" * 10 + "```")
        elif i % 12 == 9:
            parts.append("\n".join(f"- item {j} of *this* list" for j in range(7)))
        else:
            parts.append(" ".join(chance.choice(words) for _ in range(40)) + ".")
    return "\n\n".join(parts)


def measure(window: MainWindow, ask: Ask, engine: PacedEngine) -> Gaps:
    QApplication.processEvents()  # it stands before somebody asks
    gaps = Gaps(engine)
    ask(window, "Go")
    gaps.stop()
    print(
        f"99th percentile {percentile(gaps.clock):.1f} ms, of work {percentile(gaps.work):.1f} ms; "
        f"most work {max(gaps.work):.1f} ms, of {len(gaps.clock)} turns"
    )
    return gaps


def undisturbed(measured: Callable[[], float], limit: float) -> float:
    """The least of up to three, in milliseconds of a machine with nothing beside: a stall of the
    window's is there each time, one that another program makes hardly is."""
    least = math.inf
    for _ in range(3):
        before = slowdown()
        took = measured()
        slower = (before + slowdown()) / 2
        print(f"{took:.1f} ms, {slower:.2f} times as slow as with nothing beside")
        least = min(least, took / slower)
        if least < limit:
            break
    return least


@pytest.mark.slow
def test_a_long_answer_streams_smoothly(open_window: OpenWindow, ask: Ask) -> None:
    """12,000 tokens at 1,500 a second, with all meters visible."""

    def worst() -> float:
        engine = PacedEngine(Script(text=prose(12_000)), 1_500.0)
        window = open_window(engine)
        window.resize(1280, 800)
        gaps = measure(window, ask, engine)
        assert percentile(gaps.work) < 50 * slowdown()
        if core_was_free():
            assert percentile(gaps.clock) < 50
        return max(gaps.work)

    assert undisturbed(worst, 100) < 100


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one line", "fence"])
def test_extreme_texts_do_not_freeze_the_window(
    open_window: OpenWindow, ask: Ask, qtbot: QtBot, kind: str
) -> None:
    if kind == "one line":
        text = base64.b64encode(random.Random(1).randbytes(225_000)).decode()
        # A token of 300 kB is one event; cut, as an engine would give it.
        text = " ".join(text[i : i + 60] for i in range(0, len(text), 60))
    else:
        lines = "\n".join(f"    value_{i} = compute({i}) # line" for i in range(5_000))
        text = f"```python\n{lines}\n```\n\nDone."

    def worst() -> float:
        script = Script(text=text)
        engine = Unspaced(script, 2_000.0) if kind == "one line" else PacedEngine(script, 10_000.0)
        window = open_window(engine)
        window.resize(1280, 800)
        coming = measure(window, ask, engine)
        gaps = Gaps()
        qtbot.wait(300)  # colours come afterwards, in slices
        gaps.stop()
        return max(*coming.work, *gaps.work)

    assert undisturbed(worst, 100) < 100


class Unspaced(PacedEngine):
    """Leaves out the spaces that part the script's tokens."""

    def events(self, request: int, command: Command) -> Iterator[Event]:
        for event in super().events(request, command):
            if isinstance(event, Decoded):
                yield replace(event, text=event.text.replace(" ", ""))
            else:
                yield event


@pytest.mark.slow
def test_a_chat_of_400_messages_opens_without_a_stall(
    open_window: OpenWindow, wait_until: WaitUntil, tmp_path: Path
) -> None:
    other, *rest = chats_of(tmp_path, 4, 200, ANSWER)
    window = open_window(history=History(tmp_path / "chats.db"))
    wait_until(lambda: bool(window.controller.book.summaries))
    window.controller.show_chat(other)  # what is made once is made with this one
    wait_until(lambda: bool(window.chats.view.answers) and window.chats.view.answers[-1].rendered)
    chats = iter(rest)

    def worst() -> float:
        chat, gaps = next(chats), Gaps()
        window.controller.show_chat(chat)
        wait_until(lambda: window.controller.current.id == chat)
        wait_until(lambda: all(a.rendered for a in window.chats.view.answers))
        gaps.stop()
        assert len(window.controller.current.path()) == 400
        assert window.chats.view.answers[-1].turn is window.controller.current.last_answer
        return max(gaps.work)

    assert undisturbed(worst, 100) < 100
