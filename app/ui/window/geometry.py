"""Place and size of the window, from one start to the next."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSettings
from PySide6.QtWidgets import QWidget

_KEY = "geometry"


def restore(window: QWidget, settings: QSettings) -> None:
    """As it was when it was closed; what is no geometry of a window is left alone."""
    saved = settings.value(_KEY)
    if isinstance(saved, QByteArray):
        window.restoreGeometry(saved)


def save(window: QWidget, settings: QSettings) -> None:
    settings.setValue(_KEY, window.saveGeometry())
