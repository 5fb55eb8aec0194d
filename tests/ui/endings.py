"""A window that is closed while it is busy: `python -m tests.ui.endings [--times 50]`.

Each run is the real application, a process of its own with the built-in guide, which is closed
by its button, by its menu or by SIGTERM: between `show()` and the event loop, while it loads,
reads a prompt, answers, downloads or converts. It must leave with 0 within five seconds, take
all its processes along, and keep what came of an answer; what was got of a model is gone on with.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app import catalog
from app.conversation import End
from app.history import History
from app.passport import Passport
from tests import hub as faults
from tests.hub import Hub, running
from tests.job.conftest import DEMO

MOMENTS: Final = ("opening", "loading", "reading", "answering", "download", "convert")
WAYS: Final = ("close", "quit", "signal")
LONGEST_S: Final = 5.0
MODEL: Final = "qwen3.5-4b"
_STUCK_S: Final = 240
_QUESTIONS: Final = {"reading": "word " * 3_000, "answering": "Count from 1 to 100"}


def victim(moment: str, way: str, seed: int) -> int:
    """In the process that is ended; `way` "" has it end by itself, once the model is here."""
    from PySide6.QtCore import QTimer

    from app.ui import application
    from app.ui.window.main_window import MainWindow

    show = MainWindow.show
    asked = ended = False

    def end(window: Any) -> None:
        answer = window.controller.current.last_answer
        print("now", len(answer.text) if answer else 0, flush=True)
        match way:
            case "close" | "":
                window.close()
            case "quit":
                window.actions_.quit.trigger()
            case "signal":
                os.kill(os.getpid(), signal.SIGTERM)

    def come(window: Any) -> bool:
        """Whether the moment has come; what leads to it is done here."""
        nonlocal asked
        loader, getting = window.loader, window.getting
        match moment:
            case "loading":
                return bool(loader.activity)
            case "reading" | "answering":
                if not asked and not loader.obstacle:
                    window.controller.new_chat()
                    asked = window.controller.ask(_QUESTIONS[moment])
                running = window.controller.answers.running
                answer = window.controller.current.last_answer
                if asked and running is None and answer and answer.end:
                    asked = False  # it was over before anybody looked
                if moment == "reading" or running is None:
                    return running is not None
                return bool(running.turn.text)
        if window.flow.current.model == MODEL:
            return not moment
        if not getting.model and (model := catalog.find(MODEL)):
            getting.get(model)  # or goes on with it
        return getting.state is not None and getting.state.step == moment

    def shown(window: Any) -> None:
        show(window)
        if moment == "opening":
            end(window)
            return
        timer = QTimer(window, interval=1)

        def look() -> None:
            nonlocal ended
            if not ended and come(window):
                ended = True
                wait = random.Random(seed).randrange(200) if way else 0
                QTimer.singleShot(wait, window, lambda: end(window))

        timer.timeout.connect(look)
        timer.start()

    MainWindow.show = shown  # type: ignore[method-assign, assignment]
    return application.run([])


@dataclass(frozen=True, slots=True)
class Ended:
    moment: str
    way: str
    seconds: float
    fault: str = ""

    def __str__(self) -> str:
        told = f"{self.moment or 'the end'}, {self.way or 'by itself'}: {self.seconds:.2f} s"
        return f"{told}; {self.fault}" if self.fault else told


class Endings:
    """Windows on one folder, one after the other."""

    def __init__(self, home: Path, hub: Hub) -> None:
        self._home, self._hub = home, hub
        self._cache = home / "hf"
        hub.add("Qwen/Qwen3.5-4B", DEMO / "target")
        hub.add("z-lab/Qwen3.5-4B-DFlash", DEMO / "draft", licence=None)

    def one(self, moment: str, way: str, seed: int = 0) -> Ended:
        """`fault` says what was not as it should be."""
        if moment == "download":  # what came before would be gone on with too soon
            shutil.rmtree(self._cache, ignore_errors=True)
        if moment in ("download", "convert"):
            shutil.rmtree(self._model, ignore_errors=True)
        # A second at least of what is large, in the first three of them.
        self._hub.always["model.safetensors"] = faults.slowly(2e6 if moment == "download" else 1e9)
        with self._start(moment, way, seed) as process:
            stuck = threading.Timer(_STUCK_S, lambda: os.killpg(process.pid, signal.SIGKILL))
            stuck.start()
            assert process.stdout is not None
            told = next((line for line in process.stdout if line.startswith("now")), "now 0")
            began = time.monotonic()
            # Whatever it started has this pipe too: it ends with the last of them.
            said = process.stdout.read()
            seconds = time.monotonic() - began
            status = process.wait()
            stuck.cancel()
        length = int(told.split()[1])
        found = [
            f"status {status}" if status else "",
            said if "Traceback" in said else "",
            "too long" if way and seconds > LONGEST_S else "",
            self._answer_fault(length) if moment in _QUESTIONS else "",
            self._model_fault() if not way else "",
        ]
        return Ended(moment, way, seconds, "; ".join(f for f in found if f))

    @property
    def _model(self) -> Path:
        return self._home / "data" / "models" / MODEL

    def _start(self, moment: str, way: str, seed: int) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "SLIPSTREAM_HOME": str(self._home),
            "HF_HOME": str(self._cache),
            "HF_ENDPOINT": self._hub.endpoint,
            "QT_QPA_PLATFORM": "offscreen",
        }
        command = [sys.executable, "-m", "tests.ui.endings", "--victim", moment, way, str(seed)]
        return subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def _answer_fault(self, length: int) -> str:
        with closing(History(self._home / "data" / "chats.db")) as history:
            opened = history.open().result()
            if opened.problem is not None:
                return str(opened.problem)
            chat, lost = history.load(opened.chats[0].id).result()
            answer = chat.last_answer if chat is not None else None
        if lost or answer is None:
            return "the answer is lost"
        if len(answer.text) < length:
            return f"{length - len(answer.text)} characters of the answer are lost"
        return "" if answer.end in (End.CLOSED, End.DONE) else f"it ended as {answer.end}"

    def _model_fault(self) -> str:
        passport = Passport.read(self._model)
        if passport is None:
            return "the model is not whole"
        passport.verify(self._model)  # raises
        return "parts are left" if list(self._cache.rglob("*.incomplete")) else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--victim", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.victim:
        return victim(*args.victim[:2], int(args.victim[2]))
    bad = 0
    with tempfile.TemporaryDirectory() as folder, running() as hub:
        endings = Endings(Path(folder), hub)
        for number in range(args.times):
            ended = endings.one(
                MOMENTS[number % len(MOMENTS)],
                WAYS[number // len(MOMENTS) % len(WAYS)],
                number,
            )
            bad += bool(ended.fault)
            print(f"{number}: {ended}", flush=True)
        ended = endings.one("", "")
        bad += bool(ended.fault)
        print(f"and gone on with: {ended}", flush=True)
    print(f"{args.times} endings, {bad} with a fault")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
