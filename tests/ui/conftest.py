"""One application with the app's own look, and windows that are closed after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partialmethod
from typing import Any

import pytest
import shiboken6
from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine import FakeEngine
from app.history import History
from app.settings import Settings
from app.ui.look.theme import Theme
from app.ui.window.main_window import MainWindow
from tests.ui.fakes import BatchEngine, FakeModels

OpenWindow = Callable[..., MainWindow]
WaitUntil = Callable[[Callable[[], bool]], None]

LONGEST_WAIT_MS = 60_000
"""For what comes soon on any machine, however busy: a wait ends when it has come."""


@pytest.fixture
def owner(qapp: QApplication) -> Iterator[QObject]:
    """The parent of what a test makes without a window, which goes with it at the end.

    Left to a garbage collection, it would go in whatever thread that happens to run in.
    """
    result = QObject()
    yield result
    shiboken6.delete(result)


@pytest.fixture
def wait_until(qtbot: QtBot) -> WaitUntil:
    """Run the event loop until something holds."""
    return qtbot.waitUntil


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five seconds, which pytest-qt waits where nothing is said, pass on a busy machine."""
    patient = partialmethod(QtBot.waitUntil, timeout=LONGEST_WAIT_MS)
    monkeypatch.setattr(QtBot, "waitUntil", patient)


@pytest.fixture(scope="session")
def look(qapp: QApplication) -> Iterator[Theme]:
    yield Theme(qapp, "light")
    # Offscreen, Qt keeps what was copied until after Python's end, which is too long.
    QGuiApplication.clipboard().clear()


@pytest.fixture
def open_window(qtbot: QtBot, look: Theme, wait_until: WaitUntil) -> Iterator[OpenWindow]:
    """`open_window(engine=..., models=..., **settings)`: a window with a loaded model."""
    windows: list[MainWindow] = []

    def open_it(
        engine: FakeEngine | None = None,
        models: FakeModels | None = None,
        wait: bool = True,
        save: Callable[[Settings], None] = lambda _: None,
        problems: Sequence[str] = (),
        folder_problems: Sequence[str] = (),
        history: History | None = None,
        **settings: Any,
    ) -> MainWindow:
        chosen = Settings(**{"theme": "light", **settings})
        window = MainWindow(
            engine or BatchEngine(),
            models or FakeModels(),
            chosen,
            save,
            look,
            problems=problems,
            folder_problems=folder_problems,
            history=history,
        )
        windows.append(window)
        window.resize(1280, 800)
        window.show()
        if wait:
            wait_until(lambda: window.loader.model is not None)
        wait_until(lambda: activated(window))  # last: the end of the window before takes it away
        return window

    yield open_it
    for window in windows:
        window.close()
        window.deleteLater()
    wait_until(lambda: QApplication.activeWindow() is None)
    qtbot.wait(1)  # lets Qt delete them now, and not in the middle of the next test


def activated(window: MainWindow) -> bool:
    """Whether its keys work: a window that a test before left may have them still."""
    window.activateWindow()  # which is forgotten, where it comes too early
    return window.isActiveWindow()


@pytest.fixture
def ask(wait_until: WaitUntil) -> Callable[[MainWindow, str], None]:
    """Send and wait for the end of the answer and of its rendering."""

    def ask_it(window: MainWindow, text: str) -> None:
        assert window.controller.ask(text)
        wait_until(lambda: not window.controller.busy)
        wait_until(lambda: window.chats.view.answers[-1].rendered)

    return ask_it
