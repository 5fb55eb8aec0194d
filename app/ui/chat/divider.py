"""Where a model begins to read a chat whose oldest messages it is no longer given."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget

from app.ui.look import theme
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space

HEIGHT: Final = 48
"""Px that it takes in the chat."""


class Divider(QWidget):
    """A line across the chat, what it parts, and the way back."""

    undone = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        about = QLabel(tr("The model reads from here on"))
        about.setProperty("kind", "caption")
        about.setFont(theme.font(Size.SMALL))
        about.setMinimumWidth(1)  # a narrow window cuts it
        undo = QPushButton(tr("Read all"))
        undo.setProperty("kind", "quiet")
        undo.setFont(theme.font(Size.SMALL))
        undo.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        undo.setAccessibleName(tr("Have the model read the whole chat again"))
        undo.setToolTip(tr("Have the model read the whole chat again"))
        undo.clicked.connect(self.undone)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, Space.M)
        row.setSpacing(Space.S)
        row.addWidget(_line(), 1)
        row.addWidget(about)
        row.addWidget(undo)
        row.addWidget(_line(), 1)
        self.hide()


def _line() -> QFrame:
    result = QFrame()
    result.setProperty("kind", "rule")
    result.setFixedHeight(1)
    return result
