"""A selection that is drawn beyond the edge of what is seen: more of the text comes into view."""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtCore import QObject, QPointF, QTimer
from PySide6.QtWidgets import QScrollArea

from app.ui.markdown.text_view import TextView

_EVERY_MS: Final = 20

_SLOWNESS: Final = 3
"""Px beyond the edge for each px that is scrolled at a time..."""

_MOST: Final = 40
"""... which are no more than this."""


class DragScroll(QObject):
    """Scrolls `area` while the mouse that selects in a text of it is held above or below."""

    def __init__(self, area: QScrollArea) -> None:
        super().__init__(area)
        self._area = area
        self._text: TextView | None = None
        self._mouse = QPointF()  # on the screen
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self._scroll)

    def watch(self, text: TextView) -> None:
        text.dragged.connect(partial(self._drag, text))
        text.dropped.connect(self._timer.stop)
        text.destroyed.connect(self._timer.stop)

    def _drag(self, text: TextView, mouse: QPointF) -> None:
        self._text, self._mouse = text, mouse
        if not self._beyond():
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()

    def _beyond(self) -> float:
        """Px that the mouse is below what is seen, negative above it."""
        seen = self._area.viewport()
        y = seen.mapFromGlobal(self._mouse).y()
        return min(0.0, y) + max(0.0, y - seen.height())

    def _scroll(self) -> None:
        if self._text is None or not self._text.hasFocus():  # the button went up elsewhere
            self._timer.stop()
            return
        bar, by = self._area.verticalScrollBar(), self._beyond() / _SLOWNESS
        bar.setValue(bar.value() + round(max(-_MOST, min(_MOST, by))))
        self._text.select_to(self._mouse)
