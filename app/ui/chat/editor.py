"""A question that is put anew: text and files to be changed, in the place where it stands."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.drafting import Attachment, Draft
from app.errors import SlipstreamError
from app.ui.chat.chips import Chips
from app.ui.chat.composer import Field, no_picture
from app.ui.chat.file_reads import FileReads
from app.ui.look.language import tr
from app.ui.look.notice import Notice
from app.ui.look.theme import Space

_MOST_LINES: Final = 16
"""More than where a question is first written: it is there already, and is read over."""


class QuestionEditor(QFrame):
    sent = Signal(str)
    left = Signal()
    given_up = Signal()
    kept = Signal(str)  # what is written, where it is not on view any more

    def __init__(self, text: str, send_with: str = "enter", parent: QWidget | None = None) -> None:
        """`send_with` is the key that asks, as in the composer; Ctrl+Enter does in any case."""
        super().__init__(parent)
        self.setProperty("kind", "composer")
        self.field = Field()
        self.field.send_with = send_with
        self.field.setPlaceholderText("")
        self.field.most_lines = _MOST_LINES
        draft = Draft.of_message(text)
        self._files = draft.attachments
        self.field.setPlainText(draft.text)
        self.field.setAccessibleName(tr("Edit your question"))
        self.field.installEventFilter(self)
        self.field.textChanged.connect(self._edited)
        self.field.send_wanted.connect(self._ask)
        self.field.long_pasted.connect(self.field.insertPlainText)
        self._reads = FileReads(self)
        self._reads.changed.connect(self._show_reading)
        self._reads.came.connect(self._take)
        self._reads.refused.connect(self._refuse)
        self.field.files_given.connect(self._reads.read)
        self.field.picture_given.connect(lambda: self._refuse(no_picture()))
        self.chips = Chips()
        self.chips.removed.connect(self._take_away)
        self.chips.unwanted.connect(self._reads.stop)
        self._cancel = QPushButton(tr("Cancel"))
        self._cancel.setProperty("kind", "outline")
        self._send = QPushButton(tr("Ask again"))
        self._send.setProperty("kind", "outline")
        self._send.setToolTip("Enter" if send_with == "enter" else "Ctrl+Enter")
        self._cancel.setToolTip(tr("Give up what you changed; Esc keeps it for later"))
        self._cancel.clicked.connect(self.given_up)
        self._send.clicked.connect(self._ask)
        buttons = QHBoxLayout()
        buttons.setSpacing(Space.S)
        buttons.addStretch(1)
        buttons.addWidget(self._cancel)
        buttons.addWidget(self._send)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(Space.M, Space.M, Space.M, Space.M)
        column.setSpacing(Space.S)
        column.addWidget(self.field)
        column.addWidget(self.chips)
        column.addLayout(buttons)
        self._show_files()

    def start(self) -> None:
        self.show()
        self.field.setFocus()
        self.field.moveCursor(QTextCursor.MoveOperation.End)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.kept.emit(self._draft().message())

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
        self._send.setEnabled(bool(self._draft()) and not self._reads.names)

    def _draft(self) -> Draft:
        return Draft(self.field.toPlainText(), self._files)

    def _show_files(self) -> None:
        self.chips.show_attachments(self._files, {})
        self._edited()

    def _take_away(self, place: int) -> None:
        taken = self._files[place]
        self._files = self._files[:place] + self._files[place + 1 :]
        self._show_files()

        def put_back() -> None:
            self._files = Draft("", self._files).with_attachment(taken, place).attachments
            self._show_files()

        told = self._tell(Notice(f"“{taken.name}” is no longer attached."))
        told.add_button("Undo").clicked.connect(put_back)

    def _show_reading(self) -> None:
        self.chips.show_reading(self._reads.names)
        self._edited()

    def _take(self, attachment: Attachment) -> None:
        self._files = (*self._files, attachment)
        self._show_files()
        if not self.isVisible():
            self.kept.emit(self._draft().message())

    def _refuse(self, error: SlipstreamError) -> None:
        self._tell(Notice(error.message, error.remedy, level="error"))

    def _tell(self, notice: Notice) -> Notice:
        """Within it: it is about this question."""
        self._column.insertWidget(self._column.count() - 1, notice)
        notice.show()
        return notice

    def _ask(self) -> None:
        if self._send.isEnabled():
            self.sent.emit(self._draft().message())
