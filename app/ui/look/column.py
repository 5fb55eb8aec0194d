"""The column of text: what stands in it and what stands below it have the same edges."""

from __future__ import annotations

from typing import Final

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.ui.look.theme import COLUMN, Space

_NARROW: Final = 560
"""Width in px up to which there is less room beside the text."""


def edge(width: int) -> int:
    """Where the column begins in something of this width; it ends as far from the other side."""
    return max(Space.L if width < _NARROW else Space.XL, (width - COLUMN) // 2)


class Column(QWidget):
    """What is added to `rows` stands in the column."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows = QVBoxLayout(self)
        self.rows.setContentsMargins(Space.XL, Space.S, Space.XL, Space.M)
        self.rows.setSpacing(Space.S)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        at = edge(event.size().width())
        self.rows.setContentsMargins(at, Space.S, at, Space.M)
