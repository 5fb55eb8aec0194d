"""The window on a machine whose only graphics device is a software renderer.

`python -m tests.ui.toggle FOLDER [moments]` is the real application with the built-in guide, in the
fresh home of the environment, with the backends that lie in FOLDER. Prints one JSON object: what
the switch offers, and, where a GPU can be chosen, what each place says to one question; with
`moments` what comes of switching in mid-answer, in mid-load, in a chat that goes on, and of ten
switches.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer

from app.binding import backends
from app.conversation import End
from app.ui import application
from app.ui.window.main_window import MainWindow

QUESTION = "What is DFlash?"
NEXT = "What is a block?"
PLACES = ("gpu", "cpu", "gpu")
SWITCHES = 22
MIB = 2**20

Holds = Callable[[], bool]


class Toggling:
    """Clicks as a user does; what came is in `seen`. A script yields what it waits for."""

    def __init__(self, window: MainWindow, script: str) -> None:
        self._window = window
        self.seen: dict[str, Any] = {}
        self._script = getattr(self, script)()
        self._holds: Holds = lambda: not window.loader.obstacle and bool(window._devices)
        self._timer = QTimer(window, interval=20)
        self._timer.timeout.connect(self._look)
        self._timer.start()

    def _look(self) -> None:
        if not self._holds():
            return
        try:
            self._holds = next(self._script)
        except StopIteration:
            self._timer.stop()
            print(json.dumps(self.seen), flush=True)
            self._window.close()

    # --- what a user does ---

    def _click(self, place: str) -> None:
        self._window.header.device.button(place).click()

    def _on(self, place: str) -> Holds:
        """Whether a model is loaded there, and nothing is on its way."""
        loader = self._window.loader
        return lambda: not loader.obstacle and loader.model is not None and _place(loader) == place

    def _answered(self) -> bool:
        answer = self._window.controller.current.last_answer
        return answer is not None and answer.end is not End.COMING

    def _asked(self, text: str) -> Holds:
        assert self._window.controller.ask(text)
        return self._answered

    def _text(self) -> str:
        answer = self._window.controller.current.last_answer
        assert answer
        return answer.text

    # --- scripts ---

    def offers(self) -> Iterator[Holds]:
        window, gpu = self._window, self._window.header.device.button("gpu")
        self.seen = {
            "started_on": _place(window.loader),
            "offered": gpu.isEnabled(),
            "tip": gpu.toolTip(),
            "answers": [],
        }
        for place in PLACES if gpu.isEnabled() else ():
            self._click(place)
            yield self._on(place)
            window.controller.new_chat()
            yield self._asked(QUESTION)
            model = window.loader.model
            assert model
            self.seen["answers"].append([place, model.device.name, self._text()])

    def moments(self) -> Iterator[Holds]:
        window, controller = self._window, self._window.controller
        if not window.header.device.button("gpu").isEnabled():
            return
        # idle: the chat goes on elsewhere, which reads all of it again
        yield self._asked(QUESTION)
        self._click("gpu")
        yield self._on("gpu")
        yield self._asked(NEXT)
        there = self._text()
        # in mid-load: the last click counts
        self._click("cpu")
        yield lambda: bool(window.loader.activity)
        self._click("gpu")
        self._click("cpu")
        yield self._on("cpu")
        assert controller.again()
        yield self._answered
        self.seen["went_on"] = [there, self._text()]
        # in mid-answer: what came is kept, and says why it ended
        self._click("gpu")
        yield self._on("gpu")
        controller.new_chat()
        window.flow.change(max_tokens=96)
        self._asked(QUESTION)
        yield lambda: bool(self._text())
        self._click("cpu")
        yield self._on("cpu")
        answer = controller.current.last_answer
        assert answer
        self.seen["broken_off"] = [answer.end.value, answer.text]
        assert controller.again()
        yield self._answered
        self.seen["anew"] = self._text()
        self.seen["resident"] = []
        for _ in range(SWITCHES // 2):
            for place in ("gpu", "cpu"):
                self._click(place)
                yield self._on(place)
            self.seen["resident"].append(_resident())
        self.seen["notices"] = [notice.message for notice in window.notices.all]


def _place(loader: Any) -> str:
    return str(loader.model.backend)


def _resident() -> float:
    """MiB of this process, less what is free in it already: how much that is changes by chance."""
    gc.collect()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):  # of glibc
        libc.malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / MIB


def main(folder: Path, script: str = "offers") -> int:
    backends.backends_folder = lambda: folder
    show = MainWindow.show

    def shown(window: MainWindow) -> None:
        show(window)
        window.flow.change(verify="greedy", max_tokens=24)
        window.toggling = Toggling(window, script)  # type: ignore[attr-defined] # else collected

    MainWindow.show = shown  # type: ignore[method-assign]
    return application.run([])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
