"""What an empty chat shows: what this is, the model to be had, and something to begin with."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.ui.look import theme
from app.ui.look.labels import note
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space

SUGGESTIONS: Final = ("What is DFlash?", "Count to twenty", "Tell me a short story")

_SIDE_BY_SIDE: Final = 460
"""Width in px from which on the suggestions stand beside each other."""


class Welcome(QWidget):
    suggested = Signal(str)
    model_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        title = QLabel(tr("Ask anything: it is answered on this computer, and stays here."))
        title.setFont(theme.font(Size.HEADINGS[0], QFont.Weight.DemiBold))
        title.setWordWrap(True)
        self._get = QPushButton()
        self._get.setProperty("kind", "outline")
        self._get.setFont(theme.font(Size.CONTROL, QFont.Weight.Medium))
        self._get.setCursor(Qt.CursorShape.PointingHandCursor)
        self._get.clicked.connect(self.model_wanted)
        self._why = note("")
        self._offer = QWidget()
        offer = QHBoxLayout(self._offer)
        offer.setContentsMargins(0, 0, 0, 0)
        offer.setSpacing(Space.M)
        offer.addWidget(self._get)
        offer.addWidget(self._why, 1)
        self._chips = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._chips.setSpacing(Space.S)
        for text in SUGGESTIONS:
            self._chips.addWidget(self._chip(text), 0, Qt.AlignmentFlag.AlignLeft)
        self._chips.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(Space.L)
        column.addStretch(3)
        column.addWidget(title)
        column.addWidget(self._offer)
        column.addLayout(self._chips)
        column.addStretch(4)
        self.offer_model("", "")

    def offer_model(self, label: str, why: str) -> None:
        """A button for the model that is better than the one in use; none without a `label`."""
        self._get.setText(label)
        self._get.setAccessibleName(label)
        self._get.setAccessibleDescription(tr(why))
        self._why.setText(tr(why))
        self._offer.setVisible(bool(label))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side_by_side = event.size().width() >= _SIDE_BY_SIDE
        direction = QBoxLayout.Direction
        self._chips.setDirection(direction.LeftToRight if side_by_side else direction.TopToBottom)

    def _chip(self, text: str) -> QPushButton:
        result = QPushButton(text)
        result.setProperty("kind", "suggestion")
        result.setFont(theme.font(Size.CONTROL))
        result.setCursor(Qt.CursorShape.PointingHandCursor)
        result.setAccessibleName(tr("Ask: {question}").format(question=text))
        result.clicked.connect(lambda: self.suggested.emit(text))
        return result
