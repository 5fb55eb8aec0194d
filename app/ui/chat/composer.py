"""Where the user writes: a field that grows, the context meter, Send and Stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QElapsedTimer, QEvent, QMimeData, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QInputMethodEvent,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
    QTextCursor,
)
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QTextEdit,
    QVBoxLayout,
    QWidget,
)

from app.drafting import Attachment, Draft
from app.errors import AttachmentError
from app.ui.chat.chips import Chips
from app.ui.look import theme, words
from app.ui.look.controls import Elided, is_paging, repolish
from app.ui.look.flow import Flow
from app.ui.look.icons import IconButton
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space

_MOST_LINES: Final = 8

_SAME_KEY_MS: Final = 100
"""After the end of a composition, an Enter that comes within this is the key that ended it."""

_ROOM_FOR_WORDS: Final = 340
"""Width in px, at the usual size of text, from which on what is below the field has words."""

LONG_PASTE: Final = 8_000
"""Characters from which on a pasted text is kept beside the field, which stays quick."""


class Field(QTextEdit):
    # No QPlainTextEdit: that one begins every paragraph at the left, whatever its language.
    send_wanted = Signal()
    long_pasted = Signal(str)
    files_given = Signal(list)  # of Path
    picture_given = Signal()
    focused = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.most_lines = _MOST_LINES
        """How high it grows; what is more of a text scrolls."""
        self.send_with = "enter"
        self.composing = False
        """Whether an input method has text that is not chosen yet: then Enter chooses."""
        self._composed = QElapsedTimer()  # since the end of the last composition
        self.setFont(theme.font(Size.BODY))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setPlaceholderText(tr("Ask anything …"))
        self.setAccessibleName(tr("Your message"))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(2)
        self.setAcceptRichText(False)
        self.textChanged.connect(self._grow)
        self._grow()

    def event(self, event: QEvent) -> bool:
        # Qt keeps the key of Redo from the window also where there is nothing to be done again.
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and event.matches(QKeySequence.StandardKey.Redo)
            and not self.document().isRedoAvailable()
        ):
            event.ignore()
            return False
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and (self.composing or self._has_just_composed()):
            return
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        control = modifiers == Qt.KeyboardModifier.ControlModifier
        plain = modifiers == Qt.KeyboardModifier.NoModifier and self.send_with == "enter"
        if enter and (control or plain):
            self.send_wanted.emit()
            return
        if is_paging(event) and not self.verticalScrollBar().maximum():  # the chat scrolls
            event.ignore()
            return
        super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        if self.composing and not event.preeditString():
            self._composed.start()
        self.composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def _has_just_composed(self) -> bool:
        """Some input methods (those of Hangul) hand on the Enter that ended the composition."""
        return self._composed.isValid() and not self._composed.hasExpired(_SAME_KEY_MS)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasUrls() or source.hasImage() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if files := local_files(source):
            self.files_given.emit(files)
        elif len(text := source.text()) > LONG_PASTE:
            self.long_pasted.emit(text)
        elif source.hasImage() and not text:
            self.picture_given.emit()
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
        lines = max(1, min(self.most_lines, round((self.document().size().height() - 4) / line)))
        fits = lines < self.most_lines
        policy = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAlwaysOff if fits else policy.ScrollBarAsNeeded
        )
        self.setFixedHeight(lines * line + 8)


def local_files(source: QMimeData) -> list[Path]:
    """Files of this machine that are pasted or dropped."""
    return [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]


def no_picture() -> AttachmentError:
    """Why a picture that is pasted or dropped goes nowhere."""
    return AttachmentError(
        "The picture is not attached: models read text here.",
        remedy="Paste or attach what it says.",
    )


class Composer(QFrame):
    """It keeps what was written until `clear`: whoever takes the message says so."""

    send_wanted = Signal()
    stop_wanted = Signal()
    think_changed = Signal(bool)
    edited = Signal()  # the draft is another one
    files_given = Signal(list)  # of Path
    picture_given = Signal()  # by the clipboard
    taken_away = Signal(object, int)  # Attachment, its place
    reading_unwanted = Signal()  # of the files that are being read
    files_wanted = Signal()  # the user wants to choose some
    options_wanted = Signal()  # of this chat

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "composer")
        self._busy = False
        self._obstacle = ""
        self._waiting = False  # for the obstacle to go: then it is sent by itself
        self._reading = False  # files: it is sent with them
        self._said = ""  # by whoever decides whether it can be sent
        self._attachments: tuple[Attachment, ...] = ()
        self._tokens: dict[Attachment, int] = {}
        self._setting = False
        self.field = Field()
        self.chips = Chips()
        self.warning = QLabel()
        self.warning.setProperty("kind", "error")
        self.warning.setFont(theme.font(Size.SMALL))
        self.warning.setWordWrap(True)
        self.remedies = Flow(spacing=Space.XS)
        self._remedies: list[tuple[QPushButton, Callable[[], bool]]] = []
        self._warned = QWidget()
        warned = QVBoxLayout(self._warned)
        warned.setContentsMargins(0, 0, 0, 0)
        warned.addWidget(self.warning)
        warned.addLayout(self.remedies)
        self._warned.hide()
        self.attach_button = IconButton("attach", "Attach text or PDF files (Ctrl+O)")
        self.options = IconButton("person", "This chat: system prompt, preset (Ctrl+P)")
        self.options.setProperty("opens_sheet", True)
        self._think = IconButton(
            "think", "Let the model think before it answers", kind="toggle", text="Think", size=16
        )
        self._think.setCheckable(True)
        self._context = QLabel()
        self._context.setProperty("kind", "caption")
        self._context.setFont(theme.font(Size.SMALL))
        self._context.setAccessibleName(tr("Context used: unknown"))
        self._hint = Elided()
        self._hint.setProperty("kind", "caption")
        self._hint.setFont(theme.font(Size.SMALL))
        self.stop = IconButton("stop", "Stop the answer (Esc)", kind="stop", role="text")
        self.send = IconButton("send", "Send (Enter)", kind="send", role="on_accent")
        self.stop.hide()

        tools = QHBoxLayout()
        tools.setSpacing(Space.S)
        tools.addWidget(self.attach_button)
        tools.addWidget(self.options)
        tools.addWidget(self._think)
        tools.addWidget(self._hint, 1)
        tools.addWidget(self._context)
        tools.addWidget(self.stop)
        tools.addWidget(self.send)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.M, Space.M, Space.S, Space.S)
        column.setSpacing(Space.S)
        column.addWidget(self.chips)
        column.addWidget(self.field)
        column.addWidget(self._warned)
        column.addLayout(tools)

        self.field.send_wanted.connect(self._send)
        self.field.textChanged.connect(self._edited)
        self.field.long_pasted.connect(self._paste)
        self.field.files_given.connect(self.files_given)
        self.field.picture_given.connect(self.picture_given)
        self.chips.removed.connect(self._remove)
        self.chips.unwanted.connect(self.reading_unwanted)
        self.attach_button.clicked.connect(self.files_wanted)
        self.options.clicked.connect(self.options_wanted)
        self.field.focused.connect(self._show_focus)
        self.send.clicked.connect(self._send)
        self.stop.clicked.connect(self.stop_wanted)
        self._think.toggled.connect(self.think_changed)
        self._update()

    def set_send_with(self, key: str) -> None:
        self.field.send_with = key
        self.send.set_label("Send (Enter)" if key == "enter" else "Send (Ctrl+Enter)")

    def set_think(self, think: bool) -> None:
        """Show it, without telling it."""
        with QSignalBlocker(self._think):
            self._think.setChecked(think)

    def set_busy(self, busy: bool) -> None:
        self._busy = busy
        self.stop.setVisible(busy)
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

    # --- the draft --------------------------------------------------------------

    def draft(self) -> Draft:
        return Draft(self.field.toPlainText(), self._attachments)

    def set_draft(self, draft: Draft) -> None:
        """Put a draft in place of whatever there is; nobody is told."""
        self._setting = True
        if draft.text != self.field.toPlainText():
            self.field.setPlainText(draft.text)
            self.field.moveCursor(QTextCursor.MoveOperation.End)
        self._set_attachments(draft.attachments)
        self._setting = self._waiting = False
        self._update()

    def clear(self) -> None:
        self.set_draft(Draft())
        self.edited.emit()

    def attach(self, attachment: Attachment, place: int | None = None) -> None:
        """Behind the others, or at its `place` among them."""
        self._set_attachments(self.draft().with_attachment(attachment, place).attachments)
        self._edited()

    def set_reading(self, names: Sequence[str]) -> None:
        """Files that are still being read: nothing is sent without them."""
        self._reading = bool(names)
        self.chips.show_reading(names)
        self._update()

    def set_tokens(self, tokens: dict[Attachment, int]) -> None:
        """Of attachments, as far as they are known."""
        self._tokens = tokens
        self.chips.show_attachments(self._attachments, tokens)

    # --- what is said about it ---------------------------------------------------

    def set_hint(self, text: str) -> None:
        self._said = text
        self._update()

    def set_warning(self, text: str) -> None:
        """Why it will not be answered, and what can be done: see `remedies`."""
        self.warning.setText(tr(text))
        for button, helps in self._remedies:
            button.setVisible(helps())
        self._warned.setVisible(bool(text))

    def add_remedy(self, text: str, helps: Callable[[], bool] = lambda: True) -> QPushButton:
        """A button that is seen with a warning, where it helps."""
        button = QPushButton(tr(text))
        button.setProperty("kind", "outline")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.remedies.addWidget(button)
        self._remedies.append((button, helps))
        return button

    def set_context(self, used: int, size: int, exact: bool = True) -> None:
        about = tr("Context used: unknown")
        if size:
            about = tr("Context used: {used} of {size} tokens").format(used=used, size=size)
        mark = "" if exact else " …"
        self._context.setText(f"{words.use(used, size)}{mark}" if size else "")
        kind = "error" if 0 < size <= used else "caption"
        if self._context.property("kind") != kind:  # told often, and styles are dear to read
            self._context.setProperty("kind", kind)
            repolish(self._context)
        self._context.setAccessibleName(about)
        self._context.setToolTip(about)

    def _send(self) -> None:
        if self.send.isEnabled():
            self.send_wanted.emit()

    def _send_waiting(self) -> None:
        if self._waiting and not self._obstacle:
            self._waiting = False
            self._send()

    def _blank(self) -> bool:
        """Whether there is nothing to send; attachments need no look for that."""
        return not self._attachments and not self.field.toPlainText().strip()

    def _edited(self) -> None:
        if self._setting:
            return
        self._waiting = False
        self._update()
        self.edited.emit()

    def _paste(self, text: str) -> None:
        if text.strip():
            self.attach(Attachment("Pasted text", text, pasted=True))

    def _remove(self, place: int) -> None:
        taken = self._attachments[place]
        self._set_attachments(self._attachments[:place] + self._attachments[place + 1 :])
        self._edited()
        self.taken_away.emit(taken, place)

    def _set_attachments(self, attachments: tuple[Attachment, ...]) -> None:
        self._attachments = attachments
        self.chips.show_attachments(attachments, self._tokens)

    def _update(self) -> None:
        waits = " · sent as soon as it can be" if self._waiting else ""
        self._hint.set_text(f"{self._obstacle}{waits}" if self._obstacle else self._said)
        self.send.setEnabled(not (self._obstacle or self._reading or self._blank()))

    def _show_focus(self, focused: bool) -> None:
        self.setProperty("focused", focused)
        repolish(self)

    def _name_tools(self) -> None:
        """Where there is no room for words, a sign and its tooltip have to do."""
        style, wide = Qt.ToolButtonStyle, self.width() >= _ROOM_FOR_WORDS * theme.scale()
        self._think.setToolButtonStyle(
            style.ToolButtonTextBesideIcon if wide else style.ToolButtonIconOnly
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._name_tools()

    def sizeHint(self) -> QSize:
        return QSize(theme.COLUMN, super().sizeHint().height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.field.setFont(theme.font(Size.BODY))
            self._name_tools()
