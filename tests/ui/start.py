"""How long the window takes to be usable: `python -m tests.ui.start [--times 5] [--first]`.

Each start is a process of its own, offscreen, with the built-in guide on the CPU. Told are
seconds from the start of the process to the first frame, to a window that takes a question,
and to the first text of its answer to one that is asked in that moment; and in how many
starts that answer was drafted. With --first each has an empty home, as a new user has.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STEPS = ("shown", "usable", "first text")


def one(leave: bool = True) -> int:
    """In the process that is measured: print the time of each step, then leave."""
    gc.disable()  # as `app.__main__` does
    from PySide6.QtCore import Qt, QTimer
    from PySide6.QtWidgets import QApplication

    from app.ui import application
    from app.ui.window.main_window import MainWindow

    seen: list[str] = []
    windows: list[Any] = []

    class Watched(MainWindow):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            windows.append(self)
            self._look_again = QTimer(self, interval=1)
            self._look_again.setTimerType(Qt.TimerType.PreciseTimer)
            self._look_again.timeout.connect(look)
            self._look_again.start()

    def step(name: str) -> None:
        seen.append(name)
        print(name, time.time(), sep="\t", flush=True)

    def look() -> None:
        window = windows[0]
        if not seen and window.isVisible():
            step("shown")
        elif len(seen) == 1 and window.header.chip.state.text.startswith("DFlash"):
            step("usable")
            window.controller.ask("What is DFlash?")
        elif len(seen) == 2 and window.controller.current.last_answer.text:
            step("first text")
        elif len(seen) == 3 and leave and not window.controller.busy:
            figures = window.controller.current.last_answer.figures
            print("drafted", figures.totals.drafted, sep="\t", flush=True)
            window.close()
            QApplication.quit()

    application.MainWindow = Watched  # type: ignore[misc]
    return application.run([])


def measure(home: Path) -> tuple[list[float], int]:
    """Seconds of each step, and the tokens drafted for the first answer."""
    environment = {**os.environ, "SLIPSTREAM_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's Python compiles a module once
    began = time.time()
    command = [sys.executable, "-m", "tests.ui.start", "--one", "leave"]
    done = subprocess.run(
        command, env=environment, timeout=300, capture_output=True, text=True, check=True
    )
    told = dict(line.split("\t") for line in done.stdout.splitlines())
    return [float(told[name]) - began for name in STEPS], int(told["drafted"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--one", choices=("leave", "stay"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        return one(args.one == "leave")
    with tempfile.TemporaryDirectory() as folder:
        if not args.first:
            measure(Path(folder))  # converts the guide
        homes = [Path(folder, str(n)) if args.first else Path(folder) for n in range(args.times)]
        runs = [measure(home) for home in homes]
    for name, times in zip(STEPS, zip(*(steps for steps, _ in runs), strict=True), strict=True):
        told = " ".join(f"{t:.2f}" for t in times)
        print(f"{name}: median {statistics.median(times):.2f} s of {told}")
    print(f"drafted: in {sum(drafted > 0 for _, drafted in runs)} of {len(runs)} first answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
