"""What text costs the window, as rows of `bench`: long answers at a pace, large blocks, memory.

The scripted engine works in the window's own thread, where the real one has its own: what it
takes there is not the window's, and is taken off its share of a core and off the gaps.
"""

from __future__ import annotations

import gc
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from tests.ui.bench import Row, Rows

TOKENS = 60_000
SEGMENT_S = 8.0
"""How long the pace is kept at the beginning of the answer, and again at its end. What lies
between comes as fast as it can, and is not measured."""


def streaming() -> Iterator[Row]:
    """60,000 tokens with all meters on, at a slow model's pace and at a fast one's."""
    for rate in (400, 1_500):
        found = _apart(f"paced({rate})")
        at = f"at {rate:,} tokens/s"
        yield Row(f"event-loop gap p99 {at}", "ms", round(found["p99"], 1), 50.0)
        yield Row(f"event-loop gap worst {at}", "ms", round(found["worst"], 1), 150.0)
        yield Row(f"share of a core, first tokens {at}", "%", round(found["first"], 1), 25.0)
        yield Row(f"share of a core, last tokens {at}", "%", round(found["last"], 1), 25.0)
        yield Row(f"bytes of memory a character {at}", "B", round(found["bytes"]), 200.0)


def large_blocks() -> Iterator[Row]:
    """What a table or code of a size that nobody asks for holds the loop at most."""
    for name, call in (
        ("table of 200 columns and 600 rows", "'table'"),
        ("code of 10,000 lines", "'code'"),
    ):
        found = _apart(f"large({call})")
        yield Row(f"event-loop gap worst, {name}", "ms", round(found["worst"], 1), 100.0)


def _apart(call: str) -> dict[str, float]:
    """In a process of its own, so that no row pays for another's window."""
    code = f"import json; from tests.ui import bench_text as b; print(json.dumps(b.{call}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def paced(rate: float) -> dict[str, float]:
    """What `streaming` tells, of one rate."""
    from app.engine import Script
    from tests.ui.bench_chats import resident
    from tests.ui.fakes import PacedEngine
    from tests.ui.gaps import Gaps, percentile
    from tests.ui.test_speed import prose

    engine = PacedEngine(Script(text=prose(TOKENS + 4_000), accepted=(5, 2, 7, 0, 4)), rate)
    window, turn = _window(engine)
    gaps = Gaps(engine)
    before = resident()

    def segment() -> float:
        """Per cent of a core that the window takes for a while."""
        engine.begin()
        spent, own, began = time.process_time(), engine.own, time.perf_counter()
        gaps.start()
        while time.perf_counter() - began < SEGMENT_S:
            turn()
        gaps.stop()
        took = time.perf_counter() - began
        return (time.process_time() - spent - (engine.own - own)) / took * 100

    engine.begin()
    window.controller.ask("Go")
    first = segment()
    engine.rate, engine.batch = math.inf, 24
    last_at = TOKENS - int(rate * SEGMENT_S)
    while engine.given < last_at:
        turn()
    engine.rate, engine.batch = rate, 1_000
    last = segment()
    gc.collect()
    shown = len(window.controller.current.path()[-1].text)
    held = (resident() - before) * 1e6 / shown
    return {
        "p99": percentile(gaps.clock),
        "worst": max(gaps.clock),
        "first": first,
        "last": last,
        "bytes": held,
        "tokens": engine.given,
        "work_p99": percentile(gaps.work),
        "work_worst": max(gaps.work),
    }


def large(kind: str) -> dict[str, float]:
    """What `large_blocks` tells, of one kind."""
    from app.engine import Script
    from tests.ui.fakes import PacedEngine
    from tests.ui.gaps import Gaps
    from tests.ui.markdown.test_cost import CODE, WIDE

    engine = PacedEngine(Script(text={"table": WIDE, "code": CODE}[kind]), 10_000.0)
    window, turn = _window(engine)
    gaps = Gaps(engine)
    window.controller.ask("Go")
    turn()
    while window.controller.busy or not all(a.rendered for a in window.chats.view.answers):
        turn()
    until = time.perf_counter() + 3.0  # its colours come afterwards
    while time.perf_counter() < until:
        turn()
    gaps.stop()
    return {"worst": max(gaps.clock), "work_worst": max(gaps.work)}


def _window(engine: object) -> tuple[object, Callable[[], None]]:
    """A window with its meters, and a turn of the loop that sleeps where nothing is due."""
    import os

    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtCore import QEventLoop
    from PySide6.QtWidgets import QApplication

    from app.settings import Settings
    from app.ui.look.theme import Theme
    from app.ui.window.main_window import MainWindow
    from tests.ui.fakes import FakeModels

    app = QApplication.instance() or QApplication([])
    window = MainWindow(
        engine, FakeModels(), Settings(n_ctx=262_144, theme="light"), lambda _: None,
        Theme(app, "light"),
    )  # fmt: skip
    window.resize(1280, 800)
    window.show()
    while window.loader.obstacle:
        app.processEvents()

    def turn() -> None:
        app.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)

    return window, turn


ROWS: list[Rows] = [streaming, large_blocks]
