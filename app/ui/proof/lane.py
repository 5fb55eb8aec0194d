"""One of two answers that stand beside each other: its time, its tokens, its text."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QTextEdit, QVBoxLayout

from app.ui.look import theme, words
from app.ui.look.labels import note
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space
from app.ui.markdown.copying import utf16_length
from app.ui.markdown.document import DocumentWriter
from app.ui.markdown.sliced import Sliced
from app.ui.markdown.text_view import TextView


class Lane(QFrame):
    def __init__(self, title: str) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._title = title = tr(title)
        self.setAccessibleName(title)
        head = QLabel(title)
        head.setFont(theme.font(Size.CONTROL, QFont.Weight.DemiBold))
        self.time = QLabel()
        self.time.setFont(theme.font(Size.HEADINGS[0], QFont.Weight.DemiBold))
        self.about = note("")
        self.about.setWordWrap(False)
        self.about.setMinimumWidth(1)
        self._text = ""
        self._other: int | None = None  # the character from which on the text is another one
        self._view = TextView(title, lambda: self._text)
        self._view.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._writer = DocumentWriter(self._view.document())
        self._slices = Sliced(self, self._write)
        self._area = QScrollArea()
        self._area.setAccessibleName(title)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setWidgetResizable(True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setWidget(self._view)
        self._area.setMinimumHeight(2 * Space.XL)
        self._area.verticalScrollBar().rangeChanged.connect(self._follow)
        figures = QHBoxLayout()
        figures.setSpacing(Space.S)
        figures.addWidget(self.time)
        figures.addWidget(self.about, 1, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.L, Space.M, Space.S, Space.M)
        column.setSpacing(Space.XS)
        column.addWidget(head)
        column.addLayout(figures)
        column.addSpacing(Space.XS)
        column.addWidget(self._area, 1)
        self.clear("")

    @property
    def text(self) -> str:
        return self._text

    @property
    def rendered(self) -> bool:
        return not self._slices.waiting

    def clear(self, state: str) -> None:
        """Begin anew; `state` is what it waits for."""
        self._text, self._other = "", None
        self._slices.clear()
        self._writer.clear()
        self._writer.open_plain()
        self._view.setExtraSelections([])
        self.time.setText("")
        self.about.setText(state)

    def add(self, text: str) -> None:
        self._text += text
        self._slices.add(text)

    def show_figures(self, tokens: int, milliseconds: float) -> None:
        self.time.setText(words.duration(milliseconds))
        rate = tokens * 1000 / milliseconds if milliseconds > 0 else None
        about = words.tokens(tokens) + (f", {words.rate(rate)}" if rate else "")
        self.about.setText(about)
        self.about.setAccessibleName(f"{self._title}: {words.duration(milliseconds)}, {about}")

    def mark_from(self, place: int) -> None:
        """Mark the text from a character on: there it is another one."""
        self._other = place
        self._mark()

    def _mark(self) -> None:
        if self._other is None or not self.rendered:
            return
        cursor = self._view.textCursor()
        cursor.setPosition(utf16_length(self._text[: self._other]))
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        marked = QTextEdit.ExtraSelection()
        marked.cursor = cursor
        look = marked.format
        look.setBackground(QColor(theme.current().selection))
        look.setFontUnderline(True)
        marked.format = look
        self._view.setExtraSelections([marked])
        cursor.setPosition(cursor.selectionStart())
        y = self._view.cursorRect(cursor).center().y()
        self._area.ensureVisible(0, y, 0, self._area.viewport().height() // 3)

    def _write(self, piece: str) -> None:
        self._writer.more(piece)
        self._mark()

    def _follow(self, _: int, most: int) -> None:
        if self._other is None:  # else that is what is to be seen
            self._area.verticalScrollBar().setValue(most)
