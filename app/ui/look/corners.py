"""Round corners of what is a window of its own, with a compositor or without.

A translucent window shows black behind its corners where nothing composes the screen, and Qt
does not tell where that is. So the corners are cut off.
"""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QBitmap, QPainter, QRegion
from PySide6.QtWidgets import QWidget


def cut(widget: QWidget, radius: int) -> None:
    """Cut off the corners of a window, for the size that it has now."""
    widget.setMask(rounded(widget.rect(), radius))


def rounded(area: QRect, radius: int) -> QRegion:
    shape = QBitmap(area.size())
    shape.clear()
    painter = QPainter(shape)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(Qt.GlobalColor.color1)
    painter.drawRoundedRect(area, radius, radius)
    painter.end()
    return QRegion(shape)
