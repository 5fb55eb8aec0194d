"""One of two answers that stand beside each other: its time, its tokens, its text."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QColor, QFont, QTextCursor
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QTextEdit, QVBoxLayout

from app.engine import tokens_per_second
from app.ui.look import theme, words
from app.ui.look.controls import is_followed
from app.ui.look.flow import Flow
from app.ui.look.labels import beside_rule, note
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space
from app.ui.markdown.copying import difference
from app.ui.markdown.dragging import DragScroll
from app.ui.markdown.markdown_view import MarkdownView
from app.ui.markdown.plain_view import PlainView
from app.ui.markdown.text_view import TextView

_LEAST: Final = 6 * Space.XL
"""Height in px of a text that can be read; a window without room for it scrolls."""


class Lane(QFrame):
    link_chosen = Signal(str)
    wrap_chosen = Signal(bool)  # of long lines of code
    written = Signal()  # more of the text is on the page

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
        self.text = self.reasoning = ""
        self._palette = theme.current()
        self._marked = False
        self.thoughts = PlainView(
            tr("{lane}: thinking").format(lane=title),
            lambda: self.reasoning.lstrip("\n"),  # models begin with empty lines
            "muted",
        )
        self.body = MarkdownView(title, lambda: self.text)
        for grown in (self.thoughts.grown, self.body.grown):
            grown.connect(self.written)
        self.body.wrap_chosen.connect(self.wrap_chosen)
        for view in (self.thoughts, self.body):
            view.link_chosen.connect(self.link_chosen)
        self._thoughts_page = beside_rule(self.thoughts)
        self._page = page = QFrame()
        page.setObjectName("scrolled")
        texts = QVBoxLayout(page)
        texts.setContentsMargins(0, 0, 0, 0)
        texts.setSpacing(Space.XS)
        texts.addWidget(self._thoughts_page)
        texts.addWidget(self.body)
        texts.addStretch(1)
        self._area = QScrollArea()
        self._area.setAccessibleName(title)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setWidgetResizable(True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setWidget(page)
        self._area.setMinimumHeight(_LEAST)
        self._at, self._followed = 0, True
        self._area.verticalScrollBar().valueChanged.connect(self._moved)
        self._area.verticalScrollBar().rangeChanged.connect(self._follow)
        drag = DragScroll(self._area)
        for view in (self.thoughts, self.body):
            drag.watch(view)
        figures = Flow(spacing=Space.S)  # large words stand below each other
        figures.addWidget(self.time)
        figures.addWidget(self.about)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.L, Space.M, Space.S, Space.M)
        column.setSpacing(Space.XS)
        column.addWidget(head)
        column.addLayout(figures)
        column.addSpacing(Space.XS)
        column.addWidget(self._area, 1)
        self.clear("")

    @property
    def rendered(self) -> bool:
        return self.thoughts.rendered and self.body.rendered

    def clear(self, state: str) -> None:
        """Begin anew; `state` is what it waits for."""
        self.text = self.reasoning = ""
        self._marked, self._followed = False, True
        for view in (self.thoughts, self.body):
            view.restart()
            view.setExtraSelections([])
        self._thoughts_page.hide()
        self.time.setText("")
        self.about.setText(state)

    def add(self, text: str, reasoning: str) -> None:
        if reasoning:
            begun = bool(self.reasoning.lstrip("\n"))
            self.reasoning += reasoning
            self._thoughts_page.show()
            self.thoughts.add(reasoning if begun else reasoning.lstrip("\n"))
        if text:
            self.text += text
            self.body.add(text)

    def finish(self) -> None:
        """No more text comes."""
        self.body.finish()

    def show_figures(self, tokens: int, milliseconds: float) -> None:
        """`milliseconds` of the rounds, to which the first token does not belong."""
        self.time.setText(words.duration(milliseconds))
        rate = tokens_per_second(tokens - 1, milliseconds)
        about = words.tokens(tokens) + (f", {words.rate(rate)}" if rate else "")
        self.about.setText(about)
        self.about.setAccessibleName(f"{self._title}: {words.duration(milliseconds)}, {about}")

    def mark(self, view: TextView, place: int) -> None:
        """Mark a text from a position of its document on: there it is another one."""
        first, self._marked = not self._marked, True
        cursor = view.textCursor()
        place = min(place, view.document().characterCount() - 1)  # the other one may go on there
        cursor.setPosition(place)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        marked = QTextEdit.ExtraSelection()
        marked.cursor = cursor
        look = marked.format
        look.setBackground(QColor(theme.current().selection))
        look.setFontUnderline(True)
        marked.format = look
        view.setExtraSelections([marked])
        if first:
            cursor.setPosition(place)
            middle = view.cursorRect(cursor).center()
            y = view.mapTo(self._page, middle).y()
            self._area.ensureVisible(0, y, 0, self._area.viewport().height() // 3)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._palette is not theme.current():
            self._palette = theme.current()
            self.thoughts.rewrite()
            self.body.rewrite()

    def _moved(self, value: int) -> None:
        self._followed = is_followed(self._area.verticalScrollBar(), self._at)
        self._at = value

    def _follow(self, _: int, most: int) -> None:
        if self._followed and not self._marked:  # else that is what is to be seen
            self._area.verticalScrollBar().setValue(most)


def mark_difference(one: Lane, other: Lane) -> None:
    """Mark both from where what is seen of them is not the same; the whole text must be there."""
    parted = False
    for pair in ((one.thoughts, other.thoughts), (one.body, other.body)):
        place = 0 if parted else difference(pair[0].document(), pair[1].document())
        if place is None:
            continue
        parted = True
        for lane, view in zip((one, other), pair, strict=True):
            lane.mark(view, place)
