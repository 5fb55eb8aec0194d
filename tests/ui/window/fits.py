"""Opens the window on the screen that there is, and says whether it fits: for test_geometry."""

from __future__ import annotations

import os
import sys

from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from app.settings import Settings
from app.ui.look.theme import Theme
from app.ui.window.main_window import MainWindow
from tests.ui.fakes import BatchEngine, FakeModels


def main() -> None:
    app = QApplication(sys.argv[:1])
    look = Theme(app, "light")
    window = MainWindow(BatchEngine(), FakeModels(), Settings(), lambda _: None, look)
    window.show()
    app.processEvents()
    for fault in faults(window, app):
        print(fault)
    print("fits", flush=True)
    window.close()
    os._exit(0)  # how Qt is taken apart is not the matter here


def faults(window: MainWindow, app: QApplication) -> list[str]:
    found = []
    room = app.primaryScreen().availableGeometry()
    if not room.contains(window.geometry()):
        found.append(f"{window.geometry()} is not within {room}")
    found += [
        f"{part.accessibleName()} at {place(part, window)} is cut"
        for part in (window.composer, *window.header.findChildren(QAbstractButton))
        if part.isVisible() and not window.rect().contains(place(part, window))
    ]
    return found


def place(part: QWidget, window: QWidget) -> object:
    return part.rect().translated(part.mapTo(window, part.rect().topLeft()))


if __name__ == "__main__":
    main()
