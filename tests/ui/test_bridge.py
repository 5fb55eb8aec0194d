"""Events become signals, in order, in bundles, and at a pace the window can bear."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from PySide6.QtCore import QObject

from app.conversation import ChatMessage, Role
from app.engine import (
    Answer,
    AskParams,
    Command,
    Event,
    Loading,
    LoadParams,
    Plain,
    RoundRecord,
    Script,
)
from app.errors import ModelFileError
from app.ui.bridge import ASLEEP, IDLE, LONGEST, SHARE, SHORTEST, EngineBridge, Reply
from tests.ui.fakes import BatchEngine

HELLO = (ChatMessage(Role.USER, "Hello"),)


def loaded(engine: BatchEngine, owner: QObject) -> EngineBridge:
    bridge = EngineBridge(engine, owner)
    bridge.load(LoadParams(Path("target.gguf")))
    for _ in range(4):
        bridge.drain()
    return bridge


def test_signals_come_in_order_and_rounds_in_bundles(owner: QObject) -> None:
    engine = BatchEngine(Script(text=" ".join(f"word{i}" for i in range(60))), batch=1000)
    bridge = loaded(engine, owner)
    told: list[object] = []
    reply = bridge.ask(HELLO, AskParams())
    reply.prefilled.connect(lambda event: told.append("prefilled"))
    reply.decoded.connect(lambda text, reasoning, rounds: told.append((text, rounds)))
    reply.finished.connect(told.append)
    bridge.drain()
    assert told[0] == "prefilled"
    assert len(told) == 3
    text, rounds = told[1]  # type: ignore[misc]
    assert text == engine.script.text
    assert len(rounds) == told[2].totals.rounds  # type: ignore[attr-defined]


def test_each_request_is_told_of_its_own_alone(owner: QObject) -> None:
    bridge = loaded(BatchEngine(Script(text="one two three"), batch=1), owner)
    texts, ends = ["", ""], [0, 0]

    def listen(index: int, reply: Reply) -> None:
        def grow(text: str, reasoning: str, rounds: list[RoundRecord]) -> None:
            texts[index] += text

        def end(answer: Answer) -> None:
            ends[index] += 1

        reply.decoded.connect(grow)
        reply.finished.connect(end)

    replies = [bridge.ask(HELLO, AskParams()) for _ in texts]
    for index, reply in enumerate(replies):
        listen(index, reply)
    replies[0].cancel()
    for _ in range(20):
        bridge.drain()
    assert texts == ["", "one two three"]
    assert ends == [1, 1]
    replies[0].cancel()  # it has ended: nothing happens


def test_what_is_abandoned_tells_nothing(owner: QObject) -> None:
    engine = BatchEngine(batch=1)
    bridge = EngineBridge(engine, owner)
    told: list[object] = []
    models: list[object] = []
    bridge.model_changed.connect(models.append)
    request = bridge.load(LoadParams(Path("target.gguf")))
    for signal in (request.progressed, request.finished, request.failed):
        signal.connect(told.append)
    request.abandon()
    for _ in range(6):
        bridge.drain()
    assert not told
    assert bridge.interval >= IDLE


def test_what_is_loaded_is_told_to_everybody(owner: QObject) -> None:
    engine = BatchEngine(batch=1000)
    bridge = EngineBridge(engine, owner)
    models: list[object] = []
    rates: list[Plain] = []
    bridge.model_changed.connect(models.append)
    bridge.plain_measured.connect(rates.append)
    probed: list[bool] = []
    bridge.exactness_probed.connect(probed.append)
    loads: list[object] = []
    bridge.load(LoadParams(Path("target.gguf"))).finished.connect(loads.append)
    bridge.drain()
    assert models == loads
    bridge.drain()
    assert rates == [Plain(engine.script.plain_tokens_per_s)]
    assert probed == [engine.script.exact]
    engine.script.load_error = ModelFileError("Cut short.", remedy="Convert it again.")
    bridge.load(LoadParams(Path("target.gguf")))
    bridge.drain()
    assert models[-1] is None


def test_the_timer_hurries_only_while_something_is_open(owner: QObject) -> None:
    bridge = loaded(BatchEngine(batch=1000), owner)
    assert bridge.interval >= IDLE
    bridge.ask(HELLO, AskParams())
    assert bridge.interval == SHORTEST
    bridge.drain()
    assert bridge.interval >= IDLE


def burn(seconds: float) -> None:
    """Of this thread's own time: a window that waits for a core has not worked."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_a_slow_window_is_given_time(owner: QObject) -> None:
    bridge = loaded(BatchEngine(Script(text="word " * 200), batch=1), owner)
    slow = True
    reply = bridge.ask(HELLO, AskParams())
    reply.decoded.connect(lambda *_: burn(0.012 if slow else 0.0))
    intervals = []
    bridge.drain()
    for _ in range(6):
        bridge.drain()
        intervals.append(bridge.interval)
    assert intervals[-1] >= 12 / SHARE * 0.85  # ms: what it costs is that share of it
    assert max(intervals) <= LONGEST
    slow = False
    for _ in range(12):
        bridge.drain()
    assert bridge.interval < 2 * SHORTEST


def test_the_end_of_a_load_need_not_wait_for_what_the_window_did(owner: QObject) -> None:
    class Halves(BatchEngine):
        """Tells of a load twice: what the window does at the first is seen at the second."""

        def events(self, request: int, command: Command) -> Iterator[Event]:
            for event in super().events(request, command):
                if isinstance(event, Loading):
                    yield Loading(request, event.fraction / 2)
                yield event

    bridge = EngineBridge(Halves(batch=1), owner)
    load = bridge.load(LoadParams(Path("target.gguf")))
    loaded_: list[object] = []
    shown: list[float] = []

    def show(fraction: float) -> None:
        burn(0.03)
        shown.append(fraction)

    load.progressed.connect(show)
    load.finished.connect(loaded_.append)
    while len(shown) < 2:
        bridge.drain()
    assert not loaded_
    assert bridge.interval == SHORTEST
    while not loaded_:
        bridge.drain()
    assert bridge.interval >= IDLE


def test_a_window_with_nothing_to_do_is_not_woken_ten_times_a_second(owner: QObject) -> None:
    bridge = EngineBridge(BatchEngine(), owner)
    for _ in range(10):
        bridge.drain()
    assert bridge.interval == ASLEEP
    bridge.devices()
    assert bridge.interval == SHORTEST
    bridge.close()
