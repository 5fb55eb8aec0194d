"""The window with a GPU backend in its folder: the toggle lights up and works.

    python -m tests.native.toggle LIBRARY     prints what happened as JSON

In a process of its own: a backend that is loaded once stays.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolButton

from app.binding import backends
from app.engine import Engine
from app.library import Library
from app.settings import Settings
from app.ui.look.theme import Theme
from app.ui.window import backends as watch
from app.ui.window.main_window import MainWindow
from tests.ui.shots import answered

SECONDS = 240


def wait(condition: Callable[[], object]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(condition)
        QTest.qWait(20)


def main(library: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "backends")
        place.mkdir()
        for module in (backends, watch):
            module.backends_folder = lambda: place
        application = QApplication([])
        settings = Settings(backend="auto", max_tokens=4)
        window = MainWindow(
            Engine(), Library.of_user(), settings, lambda _: None, Theme(application)
        )
        window.show()
        (gpu, cpu) = (button_of(window, name) for name in ("GPU", "CPU"))
        wait(lambda: gpu.toolTip() and window.loader.model)
        told: dict[str, object] = {"before": (gpu.isEnabled(), gpu.toolTip())}

        part = place / "x.part"
        shutil.copyfile(library, part)
        part.replace(place / library.name)  # as the build that ends beside the window does
        wait(lambda: gpu.toolTip() != told["before"][1])
        told["after"] = (gpu.isEnabled(), gpu.toolTip())
        if gpu.isEnabled():
            told["answers"] = [ask(window)]
            for button in (gpu, cpu):
                button.click()
                wait(lambda b=button: b.isChecked() and window.loader.model is not None)
                told["answers"].append(ask(window))
            told["turns"] = len(window.chats.view.answers)
        print(json.dumps(told), flush=True)
        window.close()


def button_of(window: MainWindow, name: str) -> QToolButton:
    (found,) = (
        b for b in window.header.device.findChildren(QToolButton) if b.text().startswith(name)
    )
    return found


def ask(window: MainWindow) -> tuple[str, str]:
    """Where it was answered, and the answer."""
    count = len(window.chats.view.answers)
    window.controller.ask("What is DFlash?")
    wait(lambda: len(window.chats.view.answers) > count and answered(window))
    model = window.loader.model
    assert model
    return model.device.name, window.chats.view.answers[-1].turn.text


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # the engine's thread would wait for its next command
