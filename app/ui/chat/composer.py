"""Where the user writes: a field that grows, the context meter, Send and Stop."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QTextEdit,
    QVBoxLayout,
    QWidget,
)

from app.ui.look import theme, words
from app.ui.look.icons import IconButton
from app.ui.look.theme import Size, Space

MOST_LINES: Final = 8


LONG_PASTE: Final = 8_000
"""Characters from which on a pasted text is kept beside the field, which stays quick."""


class Field(QTextEdit):
    # No QPlainTextEdit: that one begins every paragraph at the left, whatever its language.
    send_wanted = Signal()
    long_pasted = Signal(str)
    focused = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.send_with = "enter"
        self.composing = False
        """Whether an input method has text that is not chosen yet: then Enter chooses."""
        self.setFont(theme.font(Size.BODY))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setPlaceholderText("Ask anything …")
        self.setAccessibleName("Your message")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(2)
        self.setAcceptRichText(False)
        self.textChanged.connect(self._grow)
        self._grow()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and self.composing:
            return
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        control = modifiers == Qt.KeyboardModifier.ControlModifier
        plain = modifiers == Qt.KeyboardModifier.NoModifier and self.send_with == "enter"
        if enter and (control or plain):
            self.send_wanted.emit()
            return
        super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self.composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if len(text := source.text()) > LONG_PASTE:
            self.long_pasted.emit(text)
        else:
            self.insertPlainText(text)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._grow()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit(False)

    def _grow(self) -> None:
        line = self.fontMetrics().lineSpacing()
        lines = max(1, min(MOST_LINES, round((self.document().size().height() - 4) / line)))
        fits = lines < MOST_LINES
        policy = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAlwaysOff if fits else policy.ScrollBarAsNeeded
        )
        self.setFixedHeight(lines * line + 8)


class Composer(QFrame):
    """It keeps what was written until `clear`: whoever takes the message says so."""

    send_wanted = Signal(str)
    stop_wanted = Signal()
    think_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "composer")
        self._busy = False
        self._obstacle = ""
        self._waiting = False  # for the obstacle to go: then it is sent by itself
        self._pasted: list[str] = []
        self.field = Field()
        self._pastes = IconButton(
            "close", "Remove the pasted text", kind="outline", text="-", size=14
        )
        self._pastes.clicked.connect(lambda: self._set_pasted([]))
        self._pastes.hide()
        self._think = IconButton(
            "think", "Let the model think before it answers", kind="toggle", text="Think", size=16
        )
        self._think.setCheckable(True)
        self._context = QLabel()
        self._context.setProperty("kind", "caption")
        self._context.setFont(theme.font(Size.SMALL))
        self._context.setAccessibleName("Context used: unknown")
        self._hint = QLabel()
        self._hint.setProperty("kind", "caption")
        self._hint.setFont(theme.font(Size.SMALL))
        self.stop = IconButton("stop", "Stop the answer (Esc)", kind="stop", role="text")
        self.send = IconButton("send", "Send (Enter)", kind="send", role="on_accent")
        self.stop.hide()

        tools = QHBoxLayout()
        tools.setSpacing(Space.S)
        tools.addWidget(self._think)
        tools.addWidget(self._hint)
        tools.addStretch(1)
        tools.addWidget(self._context)
        tools.addWidget(self.stop)
        tools.addWidget(self.send)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.M, Space.M, Space.S, Space.S)
        column.setSpacing(Space.S)
        column.addWidget(self._pastes, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.field)
        column.addLayout(tools)

        self.field.send_wanted.connect(self._send)
        self.field.textChanged.connect(self._edited)
        self.field.long_pasted.connect(lambda text: self._set_pasted([*self._pasted, text]))
        self.field.focused.connect(self._show_focus)
        self.send.clicked.connect(self._send)
        self.stop.clicked.connect(self.stop_wanted)
        self._think.toggled.connect(self.think_changed)
        self._update()

    def set_send_with(self, key: str) -> None:
        self.field.send_with = key
        self.send.set_label("Send (Enter)" if key == "enter" else "Send (Ctrl+Enter)")

    def set_think(self, think: bool) -> None:
        self._think.setChecked(think)

    def set_busy(self, busy: bool) -> None:
        self._busy = busy
        self.stop.setVisible(busy)
        self.send.setVisible(not busy)
        self._update()
        self._send_waiting()

    def set_obstacle(self, why: str) -> None:
        """Why nothing can be sent now; empty when it can, and what waits for that is sent."""
        self._obstacle = why
        self._update()
        self._send_waiting()

    def suggest(self, text: str) -> None:
        """Send `text` as soon as nothing is in the way, unless it is changed before that.

        Where there is a draft, it joins that and waits for the user.
        """
        drafted = not self._blank()
        self.field.moveCursor(QTextCursor.MoveOperation.End)
        self.field.insertPlainText(f"\n{text}" if drafted else text)
        self._waiting = not drafted
        self._update()
        self._send_waiting()

    def clear(self) -> None:
        self.field.clear()
        self._set_pasted([])

    def set_context(self, used: int, size: int) -> None:
        self._context.setText(f"{words.count(used)} / {words.count(size)}" if size else "")
        about = f"Context used: {used} of {size} tokens" if size else "Context used: unknown"
        self._context.setAccessibleName(about)
        self._context.setToolTip(about)

    def _send(self) -> None:
        if self.send.isEnabled() and not self._busy:
            self.send_wanted.emit(self._message())

    def _send_waiting(self) -> None:
        if self._waiting and not self._obstacle and not self._busy:
            self._waiting = False
            self._send()

    def _message(self) -> str:
        written = self.field.toPlainText().strip("\n")
        return "\n\n".join(part for part in (written, *self._pasted) if part.strip())

    def _blank(self) -> bool:
        """Whether there is nothing to send; the pasted texts need no look for that."""
        return not self._pasted and not self.field.toPlainText().strip()

    def _edited(self) -> None:
        self._waiting = False
        self._update()

    def _set_pasted(self, texts: list[str]) -> None:
        self._pasted = [text for text in texts if text.strip()]
        length = sum(map(len, self._pasted))
        self._pastes.setText(f"Pasted text · {words.count(length)} characters")
        self._pastes.setVisible(bool(self._pasted))
        self._update()

    def _update(self) -> None:
        waits = " · sent as soon as it can be" if self._waiting else ""
        self._hint.setText(f"{self._obstacle}{waits}" if self._obstacle else "")
        self.send.setEnabled(not self._obstacle and not self._blank())

    def _show_focus(self, focused: bool) -> None:
        self.setProperty("focused", focused)
        self.style().unpolish(self)
        self.style().polish(self)

    def sizeHint(self) -> QSize:
        return QSize(theme.COLUMN, super().sizeHint().height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.field.setFont(theme.font(Size.BODY))
