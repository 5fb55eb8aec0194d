"""Place and size of the window, from one start to the next."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QByteArray, QRect, QSettings, QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

_KEY: Final = "geometry"
_WANTED: Final = QSize(1280, 800)
_FRAME: Final = QSize(8, 40)
"""What a desktop draws around a window, about: before it is shown, nobody tells."""


def place(window: QWidget, settings: QSettings | None) -> None:
    """As it was when it was closed, where that can still be seen; else as on the first start."""
    first(window)
    if settings is None:
        return
    saved = settings.value(_KEY)
    if isinstance(saved, QByteArray) and window.restoreGeometry(saved) and not _seen(window):
        window.setWindowState(Qt.WindowState.WindowNoState)  # maximised on a screen that is gone
        first(window)


def first(window: QWidget) -> None:
    """In the middle of the screen, and no larger than it."""
    room = _room(QGuiApplication.primaryScreen().availableGeometry())
    size = _WANTED.boundedTo(room.size())
    window.resize(size)
    middle = QRect(room.topLeft(), size)
    middle.moveCenter(room.center())
    window.move(middle.topLeft())


def save(window: QWidget, settings: QSettings) -> None:
    settings.setValue(_KEY, window.saveGeometry())
    settings.sync()  # the event loop may not turn again


def _seen(window: QWidget) -> bool:
    """Whether all of it lies on one screen that is there."""
    place = window.geometry()
    screens = (screen.geometry() for screen in QGuiApplication.screens())
    return any(screen.contains(place) for screen in screens)


def _room(screen: QRect) -> QRect:
    """What a window may take of the part of a screen that no panel covers."""
    return screen.adjusted(_FRAME.width(), _FRAME.height(), -_FRAME.width(), -_FRAME.width())
