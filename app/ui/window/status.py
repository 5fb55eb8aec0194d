"""The meters as one line below the header, where there is no room for their panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.ui.look import theme
from app.ui.look.icons import IconButton
from app.ui.look.theme import Size, Space

_BETWEEN: Final = " · "


class StatusLine(QFrame):
    """Of what there is to tell, the first as far as there is room for it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "line")
        self.button = IconButton("meters", "Show the meters", kind="quiet", text="-", size=14)
        self.button.setFont(theme.font(Size.SMALL))
        self.button.setProperty("opens_sheet", True)
        self._parts: Sequence[str] = ()
        row = QHBoxLayout(self)
        row.setContentsMargins(Space.S, 0, Space.S, 0)
        row.addStretch(1)
        row.addWidget(self.button)
        row.addStretch(1)

    def tell(self, *parts: str) -> None:
        if parts != self._parts:
            self._parts = parts
            self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        room = self.width() - 2 * Space.S
        for count in range(len(self._parts), 0, -1):
            self.button.setText(_BETWEEN.join(self._parts[:count]))
            if self.button.sizeHint().width() <= room:
                break
