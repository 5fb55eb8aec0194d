"""The chats of this session."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.conversation import Conversation
from app.ui.look import theme
from app.ui.look.theme import Size, Space

WIDTH = 220

_ID = Qt.ItemDataRole.UserRole


class Sidebar(QFrame):
    chosen = Signal(str)  # the conversation's id

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "panel")
        self.setFixedWidth(WIDTH)
        title = QLabel("Chats")
        title.setProperty("kind", "muted")
        title.setFont(theme.font(Size.SMALL, QFont.Weight.Medium))
        title.setContentsMargins(Space.L + 2, Space.L, 0, Space.XS)
        self.list = QListWidget()
        self.list.setAccessibleName("Chats of this session")
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        note = QLabel("Chats are kept until you close the window.")
        note.setProperty("kind", "caption")
        note.setFont(theme.font(Size.SMALL))
        note.setWordWrap(True)
        note.setContentsMargins(Space.L + 2, 0, Space.L, Space.L)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(title)
        column.addWidget(self.list, 1)
        column.addWidget(note)
        self.list.currentItemChanged.connect(self._choose)

    def show_chats(self, chats: Iterable[Conversation], chosen: Conversation) -> None:
        self.list.blockSignals(True)
        self.list.clear()
        for chat in chats:
            item = QListWidgetItem(chat.title, self.list)
            item.setData(_ID, chat.id)
            if chat is chosen:
                self.list.setCurrentItem(item)
        self.list.blockSignals(False)

    def _choose(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.chosen.emit(item.data(_ID))
