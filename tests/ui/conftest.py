"""One application with the app's own look, and windows that are closed after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine import FakeEngine
from app.settings import Settings
from app.ui.look.theme import Theme
from app.ui.window.main_window import MainWindow
from tests.ui.fakes import BatchEngine, FakeModels

OpenWindow = Callable[..., MainWindow]


@pytest.fixture(scope="session")
def look(qapp: QApplication) -> Theme:
    return Theme(qapp, "light")


@pytest.fixture
def open_window(qtbot: QtBot, look: Theme) -> Iterator[OpenWindow]:
    """`open_window(engine=..., models=..., **settings)`: a window with a loaded model."""
    windows: list[MainWindow] = []

    def open_it(
        engine: FakeEngine | None = None,
        models: FakeModels | None = None,
        wait: bool = True,
        save: Callable[[Settings], None] = lambda _: None,
        **settings: Any,
    ) -> MainWindow:
        chosen = Settings(**{"theme": "light", **settings})
        window = MainWindow(engine or BatchEngine(), models or FakeModels(), chosen, save, look)
        windows.append(window)
        window.show()
        if wait:
            qtbot.waitUntil(lambda: window.header.chip.state.text == "DFlash ready")
        return window

    yield open_it
    for window in windows:
        window.close()
        window.deleteLater()
    qtbot.wait(1)  # lets Qt delete them now, and not in the middle of the next test


@pytest.fixture
def ask(qtbot: QtBot) -> Callable[[MainWindow, str], None]:
    """Send and wait for the end of the answer and of its rendering."""

    def ask_it(window: MainWindow, text: str) -> None:
        window.send(text)
        qtbot.waitUntil(lambda: not window.answering.busy, timeout=20_000)
        qtbot.waitUntil(lambda: window.view.answers[-1].rendered, timeout=20_000)

    return ask_it
