"""What an empty chat shows: what this is, the model to be had, and something to begin with."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.ui.look import theme
from app.ui.look.flow import flow
from app.ui.look.labels import note
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space

SUGGESTIONS: Final = ("What is DFlash?", "List the planets", "Tell me a short story")
"""Which the built-in guide answers well: see its test."""


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
        chips = flow(*map(self._chip, SUGGESTIONS))
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(Space.L)
        column.addStretch(3)
        column.addWidget(title)
        column.addWidget(self._offer)
        column.addLayout(chips)
        column.addStretch(4)
        self.offer_model("", "")

    def offer_model(self, label: str, why: str) -> None:
        """A button for the model that is better than the one in use; none without a `label`."""
        self._get.setText(label)
        self._get.setAccessibleName(label)
        self._get.setAccessibleDescription(tr(why))
        self._why.setText(tr(why))
        self._offer.setVisible(bool(label))

    def needs(self, width: int) -> int:
        """Height in px, for `width` px, with nothing cut."""
        return self._column.heightForWidth(width)

    def _chip(self, text: str) -> QPushButton:
        result = QPushButton(text)
        result.setProperty("kind", "suggestion")
        result.setFont(theme.font(Size.CONTROL))
        result.setCursor(Qt.CursorShape.PointingHandCursor)
        result.setAccessibleName(tr("Ask: {question}").format(question=text))
        result.clicked.connect(lambda: self.suggested.emit(text))
        return result
