"""Inline messages: what happened, what to do, and perhaps a button with a verb."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QFont
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.ui.look import theme
from app.ui.look.icons import IconButton, Sign
from app.ui.look.theme import Size, Space

_SCHEMES: Final = ("http", "https", "mailto")


class Notice(QFrame):
    closed = Signal()

    def __init__(
        self,
        message: str,
        remedy: str = "",
        *,
        level: str = "info",
        closable: bool = True,
        parent: QWidget | None = None,
    ) -> None:
        """Without `closable` it stays, and takes no button."""
        super().__init__(parent)
        self.message = message
        self.setProperty("kind", "notice")
        self.setProperty("level", level)
        self.setAccessibleName(f"{message} {remedy}".strip())
        text = QVBoxLayout()
        text.setSpacing(2)
        head = _label(message)
        head.setFont(theme.font(Size.CONTROL, QFont.Weight.Medium))
        if level == "error":
            head.setProperty("kind", "error")
        text.addWidget(head)
        if remedy:
            text.addWidget(_label(remedy))
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(Space.M, Space.S, Space.S, Space.S)
        self._row.setSpacing(Space.S)
        if level == "error":
            self._row.addWidget(Sign("alert", "danger"), 0, Qt.AlignmentFlag.AlignTop)
        self._row.addLayout(text, 1)
        if closable:
            close = IconButton("close", "Dismiss this message", size=14)
            close.clicked.connect(self.dismiss)
            self._row.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)

    def add_button(self, label: str) -> QPushButton:
        button = QPushButton(label)
        button.setProperty("kind", "outline")
        button.setAccessibleName(label)
        button.clicked.connect(self.dismiss)
        self._row.insertWidget(self._row.count() - 1, button, 0, Qt.AlignmentFlag.AlignVCenter)
        return button

    def dismiss(self) -> None:
        self.hide()
        self.closed.emit()
        self.deleteLater()


class Notices(QWidget):
    """The messages above the composer. A new link takes the place of the last one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._link: Notice | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(Space.S)
        self.hide()

    def add(self, message: str, remedy: str = "", level: str = "info") -> Notice:
        notice = Notice(message, remedy, level=level)
        notice.closed.connect(lambda: self._drop(notice))
        self._column.addWidget(notice)
        notice.show()
        self.show()
        return notice

    def offer_link(self, address: str) -> None:
        """Show where a link leads; only then can it be opened, outside of the app."""
        if self._link is not None:
            self._link.dismiss()
        url = QUrl(address, QUrl.ParsingMode.StrictMode)
        if url.scheme().lower() in _SCHEMES:
            self._link = self.add(f"Open {address} in the browser?")
            button = self._link.add_button("Open the link")
            button.clicked.connect(lambda: QDesktopServices.openUrl(url))
        else:
            self._link = self.add(f"Only web and mail links are opened, not {address}")

    def _drop(self, notice: Notice) -> None:
        if notice is self._link:
            self._link = None
        self._column.removeWidget(notice)
        self.setVisible(self._column.count() > 0)


def _label(text: str) -> QLabel:
    result = QLabel(text)
    result.setTextFormat(Qt.TextFormat.PlainText)
    result.setWordWrap(True)
    result.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse
        | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    return result
