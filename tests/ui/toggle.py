"""The window on a machine whose only graphics device is a software renderer.

`python -m tests.ui.toggle FOLDER` is the real application with the built-in guide, in the fresh
home of the environment, with the backends that lie in FOLDER. Prints one JSON object: what the
switch offers, and, where a GPU can be chosen, what each place says to one question.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer

from app.binding import backends
from app.conversation import End
from app.ui import application
from app.ui.window.main_window import MainWindow

QUESTION = "What is DFlash?"
PLACES = ("gpu", "cpu", "gpu")


class Toggling:
    """Clicks as a user does; what came is in `seen`."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._left = list(PLACES)
        self._asked = False
        self.seen: dict[str, Any] = {"started_on": "", "offered": None, "answers": []}
        self._timer = QTimer(window, interval=20)
        self._timer.timeout.connect(self._look)
        self._timer.start()

    def _look(self) -> None:
        window, switch = self._window, self._window.header.device
        if window.loader.obstacle or not window._devices:
            return
        model = window.loader.model
        assert model
        if not self.seen["started_on"]:
            gpu = switch.button("gpu")
            self.seen["started_on"] = model.backend
            self.seen["offered"], self.seen["tip"] = gpu.isEnabled(), gpu.toolTip()
            if not gpu.isEnabled():
                self._end()
                return
        if not self._left:
            self._end()
        elif model.backend != self._left[0]:
            switch.button(self._left[0]).click()
        elif not self._asked:
            window.controller.new_chat()
            self._asked = window.controller.ask(QUESTION)
        else:
            answer = window.controller.current.last_answer
            if answer and answer.end is not End.COMING:
                self.seen["answers"].append([self._left.pop(0), model.device.name, answer.text])
                self._asked = False

    def _end(self) -> None:
        self._timer.stop()
        print(json.dumps(self.seen), flush=True)
        self._window.close()


def main(folder: Path) -> int:
    backends.backends_folder = lambda: folder
    show = MainWindow.show

    def shown(window: MainWindow) -> None:
        show(window)
        window.flow.change(verify="greedy", max_tokens=24)
        window.toggling = Toggling(window)  # type: ignore[attr-defined] # or it is collected

    MainWindow.show = shown  # type: ignore[method-assign]
    return application.run([])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
