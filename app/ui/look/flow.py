"""A layout like a line of words: what has no room beside the others goes into the next line."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QMargins, QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget

from app.ui.look.theme import Space

_STEP: Final = 8


class Flow(QLayout):
    """As wide as all of them where that can be, and otherwise as high as it must be."""

    def __init__(
        self, parent: QWidget | None = None, spacing: int = 0, *, even: bool = False
    ) -> None:
        """With `even`, of several lines none is much longer than the others."""
        super().__init__(parent)
        self._even = even
        self._items: list[QLayoutItem] = []
        self.setContentsMargins(QMargins())
        self.setSpacing(spacing)

    # --- Qt ---------------------------------------------------------------------

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        lines = self._lines(width)
        return sum(_height(line) for line in lines) + self.spacing() * (len(lines) - 1)

    def sizeHint(self) -> QSize:
        sizes = [item.sizeHint() for item in self._shown()]
        width = sum(size.width() for size in sizes) + self.spacing() * max(0, len(sizes) - 1)
        return QSize(width, max((size.height() for size in sizes), default=0))

    def minimumSize(self) -> QSize:
        sizes = [item.sizeHint() for item in self._shown()]
        return QSize(
            max((size.width() for size in sizes), default=0),
            max((size.height() for size in sizes), default=0),
        )

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        y = rect.top()
        for line in self._lines(rect.width()):
            x, height = rect.left(), _height(line)
            for item in line:
                size = item.sizeHint()
                top = y + (height - size.height()) // 2
                item.setGeometry(QRect(QPoint(x, top), size))
                x += size.width() + self.spacing()
            y += height + self.spacing()

    # --- own --------------------------------------------------------------------

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _lines(self, width: int) -> list[list[QLayoutItem]]:
        result = self._filled(width)
        while self._even and len(result) > 1:
            width -= _STEP
            narrower = self._filled(width)
            if len(narrower) > len(result) or width < _STEP:
                break
            result = narrower
        return result

    def _filled(self, width: int) -> list[list[QLayoutItem]]:
        lines: list[list[QLayoutItem]] = []
        room = -1
        for item in self._shown():
            needed = item.sizeHint().width()
            if needed > room:
                lines.append([])
                room = width
            lines[-1].append(item)
            room -= needed + self.spacing()
        return lines


def _height(line: list[QLayoutItem]) -> int:
    return max(item.sizeHint().height() for item in line)


def flow(*widgets: QWidget) -> Flow:
    """These beside each other, or below where there is no room."""
    result = Flow(spacing=Space.S)
    for widget in widgets:
        result.addWidget(widget)
    return result
