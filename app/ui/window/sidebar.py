"""The chats of this session."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QFrame, QLabel, QListWidget, QVBoxLayout, QWidget

from app.ui.look import theme
from app.ui.look.theme import Size, Space

WIDTH = 220


class Sidebar(QFrame):
    chosen = Signal(int)

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
        self.list.currentRowChanged.connect(self._row_changed)

    def show_titles(self, titles: Sequence[str], chosen: int) -> None:
        self.list.blockSignals(True)
        self.list.clear()
        self.list.addItems(titles)
        self.list.setCurrentRow(chosen)
        self.list.blockSignals(False)

    def _row_changed(self, row: int) -> None:
        if row >= 0:
            self.chosen.emit(row)
