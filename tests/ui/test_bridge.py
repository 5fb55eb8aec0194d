"""Events become signals, in order, in bundles, and at a pace the window can bear."""

from __future__ import annotations

import time
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.conversation import ChatMessage, Role
from app.engine import AskParams, LoadParams, Script
from app.ui.bridge import IDLE, LONGEST, SHORTEST, EngineBridge
from tests.ui.fakes import BatchEngine

HELLO = (ChatMessage(Role.USER, "Hello"),)


def loaded(engine: BatchEngine) -> EngineBridge:
    bridge = EngineBridge(engine)
    bridge.load(LoadParams(Path("target.gguf")))
    for _ in range(4):
        bridge.drain()
    return bridge


def test_signals_come_in_order_and_rounds_in_bundles(qtbot: QtBot) -> None:
    engine = BatchEngine(Script(text=" ".join(f"word{i}" for i in range(60))), batch=1000)
    bridge = loaded(engine)
    told: list[object] = []
    bridge.prefilled.connect(lambda request, event: told.append("prefilled"))
    bridge.decoded.connect(lambda request, text, reasoning, rounds: told.append((text, rounds)))
    bridge.finished.connect(lambda request, answer: told.append(answer))
    bridge.ask(HELLO, AskParams())
    bridge.drain()
    assert told[0] == "prefilled"
    assert len(told) == 3
    text, rounds = told[1]  # type: ignore[misc]
    assert text == engine.script.text
    assert len(rounds) == told[2].totals.rounds  # type: ignore[attr-defined]


def test_the_timer_hurries_only_while_something_is_open(qtbot: QtBot) -> None:
    bridge = loaded(BatchEngine(batch=1000))
    assert bridge.interval == IDLE
    bridge.ask(HELLO, AskParams())
    assert bridge.interval == SHORTEST
    bridge.drain()
    assert bridge.interval == IDLE


def test_a_slow_window_is_given_time(qtbot: QtBot) -> None:
    bridge = loaded(BatchEngine(Script(text="word " * 200), batch=1))
    slow = True
    bridge.decoded.connect(lambda *_: time.sleep(0.02 if slow else 0))
    bridge.ask(HELLO, AskParams())
    intervals = []
    bridge.drain()
    for _ in range(6):
        bridge.drain()
        intervals.append(bridge.interval)
    assert intervals[:3] == [2 * SHORTEST, 4 * SHORTEST, 8 * SHORTEST]
    assert max(intervals) <= LONGEST
    slow = False
    bridge.drain()
    assert bridge.interval < intervals[-1]
