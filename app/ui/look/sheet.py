"""A sheet: a titled page at the right side of the window, which scrolls and can be closed."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFont, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.ui.look import theme
from app.ui.look.controls import claim_escape, press_focused
from app.ui.look.icons import IconButton
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space

WIDTH: Final = 400


class Sheet(QFrame):
    """What it holds is added to `form`. Escape in it closes it, and does nothing else."""

    closed = Signal()

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "sheet")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setMinimumWidth(WIDTH)
        self.page = QWidget()
        self.page.setProperty("kind", "panel")
        self.form = QVBoxLayout(self.page)
        self.form.setContentsMargins(Space.XL, 0, Space.XL, Space.XL)
        self.form.setSpacing(Space.M)
        area = QScrollArea()
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(self.page)
        self.area = area
        self.close_button = IconButton("close", "")
        self.close_button.clicked.connect(self.closed)
        self._title = QLabel()
        self._title.setFont(theme.font(Size.HEADINGS[2], QFont.Weight.DemiBold))
        head = QHBoxLayout()
        head.setContentsMargins(Space.XL, Space.M, Space.M, Space.S)
        head.addWidget(self._title)
        head.addStretch(1)
        head.addWidget(self.close_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(area, 1)
        self.set_title(title)

    def set_title(self, title: str) -> None:
        self._title.setText(tr(title))
        for widget in (self, self.area):
            widget.setAccessibleName(tr(title))
        self.close_button.set_label(tr("Close: {title} (Esc)").format(title=tr(title)))

    # --- Qt ---------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        return claim_escape(event) or super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click on it is not one on what lies below it."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        elif not press_focused(event):
            super().keyPressEvent(event)
