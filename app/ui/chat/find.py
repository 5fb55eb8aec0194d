"""Words in the chat on view: how often they are there, and where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QKeyEvent, QResizeEvent, QTextCursor, QTextDocument
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QTextEdit, QWidget

from app.conversation import Role, Turn
from app.ui.chat.view import ChatView
from app.ui.look import announce, theme
from app.ui.look.column import edge
from app.ui.look.icons import IconButton
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space
from app.ui.markdown import shown
from app.ui.markdown.text_view import TextView
from app.ui.markdown.visible import visible

_MOST: Final = 500
"""Places in one message that are marked."""


class FindBar(QFrame):
    """Over the chat; Enter goes on, Shift+Enter back, Escape leaves."""

    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "header")
        self._view: ChatView | None = None
        self._turns: Sequence[Turn] = ()
        # A turn, whether in its thinking, and the how-manieth place there.
        self._places: list[tuple[Turn, bool, int]] = []
        self._at = -1
        self._going = False  # to where it is: it is scrolled to once it is rendered
        self._marked: list[TextView] = []
        self._lines: dict[tuple[str, bool], tuple[int, list[str]]] = {}  # and of how much text
        self.field = QLineEdit()
        self.field.setPlaceholderText(tr("Find in this chat"))
        self.field.setAccessibleName(tr("Find in this chat"))
        self.field.setFont(theme.font(Size.CONTROL))
        self.field.setMinimumWidth(120)
        self.field.setMaximumWidth(280)
        self.field.textChanged.connect(self._look)
        self.field.installEventFilter(self)
        self._count = QLabel()
        self._count.setProperty("kind", "caption")
        self._count.setFont(theme.font(Size.SMALL))
        self._back = IconButton("chevron-up", "The place before (Shift+Enter)", size=16)
        self._on = IconButton("chevron-down", "The next place (Enter)", size=16)
        close = IconButton("close", "Close (Esc)", size=14)
        self._back.clicked.connect(lambda: self.go(-1))
        self._on.clicked.connect(lambda: self.go(1))
        close.clicked.connect(self.leave)
        self._row = row = QHBoxLayout(self)
        row.setSpacing(Space.XS)
        row.addStretch(1)
        row.addWidget(self.field, 2)
        row.addWidget(self._count)
        for button in (self._back, self._on, close):
            row.addWidget(button)
        # What is rendered in slices is marked as it comes.
        self._again = QTimer(self, interval=30, singleShot=True)
        self._again.timeout.connect(self._mark)
        # A long chat is read while the words are written: all at once it would hold the first key.
        self._ahead: Iterator[Turn] = iter(())
        self._reader = QTimer(self, interval=0)
        self._reader.timeout.connect(self._read_ahead)
        self.hide()

    def start(self, view: ChatView, turns: Sequence[Turn], query: str = "") -> None:
        """Look in these turns, for `query` or what is in the field."""
        self._view, self._turns = view, turns
        self._lines = {}
        self._ahead = iter(turns)
        self._reader.start()
        self.show()
        if query:
            self.field.setText(query)
        self.field.setFocus()
        self.field.selectAll()
        self._look()

    def renew(self, turns: Sequence[Turn]) -> None:
        """There are others, or more of them; the place that is shown stays, and so does the
        view."""
        before, here = self._at, self._places[self._at] if self._places else None
        self._turns = turns
        self._find()
        if here in self._places:
            self._at = self._places.index(here)
        elif 0 <= before < len(self._places):
            self._at = before
        self._going = self._going and self._again.isActive()
        self._tell()
        self._mark()
        self._again.start()

    def leave(self) -> None:
        self._reader.stop()
        self._unmark()
        self.hide()
        self.closed.emit()

    def go(self, step: int) -> None:
        if self._places:
            self._at = (self._at + step) % len(self._places)
            self._show()

    def go_to(self, turn: str) -> None:
        """The first place in a turn: in its text, which is what is searched, where it has one."""
        there = [i for i, (t, *_) in enumerate(self._places) if t.id == turn]
        if there:
            self._at = next((i for i in there if not self._places[i][1]), there[0])
            self._show()

    @property
    def found(self) -> int:
        return len(self._places)

    # --- Qt -----------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        at = edge(self.width())  # it ends with the text below it
        self._row.setContentsMargins(at, Space.S, at, Space.S)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.field and isinstance(event, QKeyEvent):
            enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            if enter or event.key() == Qt.Key.Key_Escape:
                if event.type() == QEvent.Type.ShortcutOverride:
                    event.accept()
                elif event.type() == QEvent.Type.KeyPress:
                    back = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
                    if enter:
                        self.go(-1 if back else 1)
                    else:
                        self.leave()
                return True
        return super().eventFilter(watched, event)

    # --- own ----------------------------------------------------------------------------

    def _look(self) -> None:
        self._find()
        self._show()

    def _find(self) -> None:
        query = self.field.text()
        pattern = re.compile(re.escape(query), re.IGNORECASE)
        self._places = [
            (turn, thinking, n)
            for turn in (self._turns if query else ())
            for thinking in (True, False)
            for n in range(
                sum(len(pattern.findall(line)) for line in self._read(turn, thinking, query))
            )
        ]
        self._at = len(self._places) - 1  # the newest first

    def _read(self, turn: Turn, thinking: bool, query: str) -> Sequence[str]:
        """The lines that are to be read of a turn, where `query` may be in them."""
        text = turn.reasoning if thinking else turn.text
        plain = thinking or turn.role is not Role.ASSISTANT
        if not plain and not shown.may_show(text, query):
            return ()
        size, lines = self._lines.get((turn.id, thinking), (0, []))
        if size != len(text):
            lines = visible(text).split("\n") if plain else shown.lines(text)
            lines = [line.replace("\u00a0", " ") for line in lines]  # as Qt's search reads them
            self._lines[turn.id, thinking] = len(text), lines
        return lines

    def _read_ahead(self) -> None:
        turn = next(self._ahead, None)
        if turn is None:
            self._reader.stop()
        else:
            self._read(turn, False, "")

    def _show(self) -> None:
        self._tell()
        announce.say(self, self._count.text())
        if self._places and self._view is not None:
            self._view.reveal(self._places[self._at][0])
        self._going = True
        self._mark()
        self._again.start()

    def _tell(self) -> None:
        query, many = self.field.text(), len(self._places)
        text = f"{self._at + 1} of {many}" if many else "Nothing found" if query else ""
        self._count.setText(text)
        self._count.setAccessibleName(text)
        for button in (self._back, self._on):
            button.setEnabled(many > 1)

    def _mark(self) -> None:
        """All places in what is seen; the one that is shown stands out, and is gone to."""
        self._unmark()
        query = self.field.text()
        if not query or self._view is None or not self._places or not self.isVisible():
            return
        turn, thinking, n = self._places[self._at]
        for message in self._view.messages:
            if message.turn is turn:
                message.show_place(thinking)
            for text, thought in message.texts:
                cursors = _found(text.document(), query)
                shown = message.turn is turn and thought == thinking
                if shown and len(cursors) <= n and not message.rendered:
                    self._again.start()
                here = min(n, len(cursors) - 1) if shown else -1
                text.setExtraSelections(
                    [_selection(cursor, i == here) for i, cursor in enumerate(cursors)]
                )
                self._marked.append(text)
                if here >= 0 and self._going:
                    self._view.show_point(text, text.cursorRect(cursors[here]).center())
                    text.reveal(cursors[here])

    def _unmark(self) -> None:
        for body in self._marked:
            try:
                body.setExtraSelections([])
            except RuntimeError:  # its message was let go
                continue
        self._marked.clear()


def _found(document: QTextDocument, query: str) -> list[QTextCursor]:
    cursors: list[QTextCursor] = []
    cursor = document.find(query)
    while not cursor.isNull() and len(cursors) < _MOST:
        cursors.append(cursor)
        cursor = document.find(query, cursor)
    return cursors


def _selection(cursor: QTextCursor, here: bool) -> QTextEdit.ExtraSelection:
    colours = theme.current()
    result = QTextEdit.ExtraSelection()
    result.cursor = cursor
    look = result.format
    look.setBackground(QColor(colours.accent if here else colours.selection))
    if here:
        look.setForeground(QColor(colours.on_accent))
    result.format = look
    return result
