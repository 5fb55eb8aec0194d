"""Keys: none is ambiguous, whatever the desktop says its standard keys are."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.ui.window.actions import Actions
from tests.ui.conftest import OpenWindow


def test_a_key_is_listed_once(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    action = Actions(window)._add("Leave", QKeySequence("Ctrl+Q"), "Ctrl+Q", "Ctrl+W")
    assert [s.toString() for s in action.shortcuts()] == ["Ctrl+Q", "Ctrl+W"]


def test_the_menu_fits_a_small_screen(open_window: OpenWindow) -> None:
    """One that does not is laid out in columns, as high as the screen."""
    menu = open_window().actions_.menu
    assert menu.sizeHint().height() <= 700
