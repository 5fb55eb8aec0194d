"""A question that is put anew: its text to be changed, in the place where it stands."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.ui.chat.composer import Field
from app.ui.look.language import tr
from app.ui.look.theme import Space

_MOST_LINES: Final = 16
"""More than where a question is first written: it is there already, and is read over."""


class QuestionEditor(QFrame):
    sent = Signal(str)
    left = Signal()

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "composer")
        self.field = Field()
        self.field.send_with = "ctrl-enter"  # Enter begins another line
        self.field.setPlaceholderText("")
        self.field.most_lines = _MOST_LINES
        self.field.setPlainText(text)
        self.field.setAccessibleName(tr("Edit your question"))
        self.field.installEventFilter(self)
        self.field.textChanged.connect(self._edited)
        self.field.send_wanted.connect(self._ask)
        self.field.long_pasted.connect(self.field.insertPlainText)
        self._cancel = QPushButton(tr("Cancel"))
        self._cancel.setProperty("kind", "outline")
        self._send = QPushButton(tr("Ask again"))
        self._send.setProperty("kind", "outline")
        self._send.setToolTip("Ctrl+Enter")
        self._cancel.clicked.connect(self.left)
        self._send.clicked.connect(self._ask)
        buttons = QHBoxLayout()
        buttons.setSpacing(Space.S)
        buttons.addStretch(1)
        buttons.addWidget(self._cancel)
        buttons.addWidget(self._send)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.M, Space.M, Space.M, Space.M)
        column.setSpacing(Space.S)
        column.addWidget(self.field)
        column.addLayout(buttons)
        self._edited()

    def start(self) -> None:
        self.show()
        self.field.setFocus()
        self.field.moveCursor(QTextCursor.MoveOperation.End)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        escape = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
        if watched is self.field and escape:
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()  # it is not the window's Stop
            elif event.type() == QEvent.Type.KeyPress:
                self.left.emit()
            return True
        return super().eventFilter(watched, event)

    def _edited(self) -> None:
        self._send.setEnabled(bool(self.field.toPlainText().strip()))

    def _ask(self) -> None:
        if self._send.isEnabled():
            self.sent.emit(self.field.toPlainText())
