"""Figures of the window: `python3 dev.py bench ui [--json]`. Offscreen, on this machine as it is.

A row is `{name, unit, ours, goal, machine}`. `bench_chats` and `bench_text` add rows
in the same shape.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


@dataclass(frozen=True, slots=True)
class Row:
    """`ours` in `unit`, at most `goal` of which is wanted."""

    name: str
    unit: str
    ours: float
    goal: float
    machine: str = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"


Rows = Callable[[], Iterable[Row]]


def starting() -> Iterator[Row]:
    """From the start of the process to a window that takes a question; median of three."""
    from tests.ui import start

    with tempfile.TemporaryDirectory() as folder:
        start.measure(Path(folder))  # converts the guide
        runs = [start.measure(Path(folder))[0] for _ in range(3)]
    usable = statistics.median(run[start.STEPS.index("usable")] for run in runs)
    yield Row("window usable", "s", round(usable, 2), 1.0)


def typing() -> Iterator[Row]:
    """From a key to the paint that shows it, 95th percentile, while an answer streams."""
    yield Row("key to paint while streaming", "ms", _typing(""), 50.0)
    yield Row("key to paint while streaming, 200 kB pasted", "ms", _typing("word " * 40_000), 50.0)


def _typing(pasted: str) -> float:
    """In a process of its own, so that no row pays for another's window."""
    code = (
        "from tests.ui.bench import typed; import sys; print(typed(sys.stdin.read()), flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pasted, capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def typed(pasted: str) -> float:
    """Milliseconds; what is measured by `_typing`."""
    from PySide6.QtCore import QElapsedTimer
    from PySide6.QtTest import QTest
    from PySide6.QtWidgets import QApplication

    from app.drafting import Attachment
    from app.engine import Script
    from app.settings import Settings
    from app.ui.look.theme import Theme
    from app.ui.window.main_window import MainWindow
    from tests.ui.fakes import BatchEngine, FakeModels

    app = QApplication([])
    look = Theme(app, "light")
    script = Script(text=" ".join(f"word{i}" for i in range(60_000)))
    engine = BatchEngine(script, batch=8)
    window = MainWindow(engine, FakeModels(), Settings(n_ctx=262_144), lambda _: None, look)
    window.resize(1280, 800)
    window.show()
    while window.loader.obstacle:
        app.processEvents()
    window.controller.ask("Go")
    while not window.controller.current.path()[-1].text:
        app.processEvents()
    if pasted:
        window.composer.attach(Attachment("Pasted text", pasted, pasted=True))
    times = []
    clock = QElapsedTimer()
    for key in "the quick brown fox jumps over the lazy dog " * 3:
        clock.start()
        QTest.keyClick(window.composer.field, key)
        app.processEvents()  # a turn of the loop, with whatever else is due in it
        window.composer.field.viewport().repaint()
        times.append(clock.nsecsElapsed() / 1e6)
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            app.processEvents()
    assert window.controller.busy, "the answer ended too early"
    return round(sorted(times)[int(len(times) * 0.95)], 1)


def idle() -> Iterator[Row]:
    """Processor time of the whole process over five seconds with nothing to do."""
    code = "from tests.ui.bench import rested; print(*rested(), flush=True)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    share = float(done.stdout.split()[-1])
    yield Row("idle processor time", "%", share, 0.5)


def rested() -> tuple[float]:
    """Per cent of a core; what is measured by `idle`."""
    import sys as system

    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from app.ui import application

    seen: list[float] = []

    def begin() -> None:
        seen.append(time.process_time())
        QTimer.singleShot(5_000, end)

    def end() -> None:
        seen.append(time.process_time())
        print(round((seen[1] - seen[0]) / 5.0 * 100, 2), flush=True)
        system.stdout.flush()
        os._exit(0)  # how it is taken apart is not the matter here

    with tempfile.TemporaryDirectory() as home:
        os.environ["SLIPSTREAM_HOME"] = home
        app = QApplication([])
        QTimer.singleShot(15_000, app, begin)  # loaded, measured, probed
        application.run([])
    return (seen[1] - seen[0],)


ROWS: list[Rows] = [starting, typing, idle]


def all_rows() -> list[Rows]:
    others = [importlib.import_module(f"tests.ui.bench_{name}") for name in ("chats", "text")]
    return [*ROWS, *(row for other in others for row in other.ROWS)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = [row for measure in all_rows() for row in measure()]
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return 0
    for row in rows:
        mark = "" if row.ours <= row.goal else "   missed"
        print(f"{row.name:48} {row.ours:8} {row.unit:3} goal {row.goal}{mark}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
