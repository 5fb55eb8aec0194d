"""Everything that can be done, once: in the menu, with its keys."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from app.ui.look.language import tr
from app.ui.window.chat_list import EXPORTS

Keys = QKeySequence | QKeySequence.StandardKey | str

_STANDARD: Final = QKeySequence.StandardKey


class Topic(StrEnum):
    """Of the help."""

    KEYS = "Keyboard shortcuts"
    DEVICES = "Devices"
    LOG = "Log"
    LICENCES = "Licences"
    ABOUT = "About Slipstream"


class Actions:
    """The window's actions; each belongs to `window`, so that its keys always work."""

    def __init__(self, window: QWidget) -> None:
        self._window = window
        self.menu = self._into = QMenu(window)
        self.menu.setAccessibleName(tr("Menu"))
        self.new_chat = self._add("New chat", _STANDARD.New)
        self.attach = self._add("Attach files …", _STANDARD.Open)
        self._into = self.menu.addMenu(tr("Answer"))  # a menu must fit a small screen
        self.stop = self._add("Stop the answer", _STANDARD.Cancel)
        self.again = self._add("Answer again", "Ctrl+R")
        self.copy_answer = self._add("Copy the last answer", "Ctrl+Shift+C")
        self.prove = self._add("Prove it: with and without drafting", "Ctrl+Shift+E")
        self.replay = self._add("Replay the last answer", "Ctrl+Shift+Y")
        self._into = self.menu
        self.find = self._add("Find in this chat", _STANDARD.Find)
        self.search = self._add("Search all chats", "Ctrl+Shift+F")
        self.menu.addSeparator()
        self.rename = self._add("Rename this chat", "F2")
        self.pin = self._add("Pin this chat", "Ctrl+Shift+P")
        self.delete_chat = self._add("Delete this chat", "Ctrl+Shift+Backspace")
        self._into = self.menu.addMenu(tr("Export this chat"))
        self.exports = {kind: self._add(label) for kind, label in EXPORTS.items()}
        self._into = self.menu
        self.import_ = self._add("Import chats …")
        self.undo = self._add("Undo the deletion", "Ctrl+Shift+Z")
        self.undo.setEnabled(False)
        self.menu.addSeparator()
        self.sidebar = self._add("Show chats", "Ctrl+B", checkable=True)
        self.meters = self._add("Show meters", "Ctrl+M", checkable=True)
        self._into = self.menu.addMenu(tr("Text size"))
        self.larger = self._add("Larger text", _STANDARD.ZoomIn, "Ctrl+=")
        self.smaller = self._add("Smaller text", _STANDARD.ZoomOut)
        self.usual_size = self._add("Usual text size", "Ctrl+0")
        self._into = self.menu
        self.bottom = self._add("Go to the newest text", "Ctrl+End")
        self.write = self._add("Write a message", "Ctrl+L")
        self.menu.addSeparator()
        self.models = self._add("Models", "Ctrl+Shift+M")
        self.chat_options = self._add("This chat: system prompt, preset", "Ctrl+P")
        # StandardKey.Preferences is empty on Windows and on most Linux desktops.
        self.settings = self._add("Settings", "Ctrl+,")
        self._into = self.menu.addMenu(tr("Help"))
        keys: dict[Topic, tuple[Keys, ...]] = {Topic.KEYS: (_STANDARD.HelpContents, "F1")}
        self.help = {topic: self._add(topic.value, *keys.get(topic, ())) for topic in Topic}
        self._into = self.menu
        self.menu.addSeparator()
        self.quit = self._add("Quit", _STANDARD.Quit, "Ctrl+Q")

    def connect(self, action: QAction, operation: Callable[[], object]) -> None:
        action.triggered.connect(lambda _=False: operation())

    def _add(self, text: str, *keys: Keys, checkable: bool = False) -> QAction:
        action = QAction(tr(text), self._window)
        # Twice the same key would be ambiguous, and Qt would do nothing.
        listed = dict.fromkeys(QKeySequence(key) for key in keys)
        action.setShortcuts([key for key in listed if not key.isEmpty()])
        action.setCheckable(checkable)
        self._window.addAction(action)
        self._into.addAction(action)
        return action
