"""Keys: none is ambiguous, whatever the desktop says its standard keys are."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.ui.window.actions import Actions


def test_a_key_is_listed_once(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    action = Actions(window)._add("Leave", QKeySequence("Ctrl+Q"), "Ctrl+Q", "Ctrl+W")
    assert [s.toString() for s in action.shortcuts()] == ["Ctrl+Q", "Ctrl+W"]
