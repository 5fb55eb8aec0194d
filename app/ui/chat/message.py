"""The two kinds of message: the user's bubble and the answer on the page."""

from __future__ import annotations

import math
from typing import Final

from PySide6.QtCore import QElapsedTimer, QEvent, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.conversation import End, Turn
from app.engine import Figures
from app.errors import SlipstreamError
from app.ui.look import theme, words
from app.ui.look.icons import IconButton
from app.ui.look.notice import Notice
from app.ui.look.theme import Size, Space
from app.ui.markdown.document import DocumentWriter, Kind
from app.ui.markdown.highlight import Highlighter
from app.ui.markdown.sliced import Sliced
from app.ui.markdown.stream import MarkdownStream
from app.ui.markdown.text_view import TextView

_LONG: Final = 2_000
"""Characters from which on a question takes all the width there is."""


class Question(QWidget):
    """What the user wrote, as it is, in a bubble as wide as it needs."""

    link_chosen = Signal(str)

    def __init__(self, turn: Turn, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.turn = turn
        self._view = TextView("Your message", lambda: turn.text)
        self._view.link_chosen.connect(self.link_chosen)
        self._writer = DocumentWriter(self._view.document())
        self._text = Sliced(self, self._writer.more)
        self._bubble = QFrame()
        self._bubble.setProperty("kind", "bubble")
        inside = QVBoxLayout(self._bubble)
        inside.setContentsMargins(Space.L, 11, Space.L, 9)
        inside.addWidget(self._view)
        outside = QHBoxLayout(self)
        outside.setContentsMargins(0, 0, 0, 0)
        outside.addStretch(1)
        outside.addWidget(self._bubble)
        self._write()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._palette is not theme.current():
            self._write()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _write(self) -> None:
        self._palette = theme.current()
        self._text.clear()
        self._writer.clear()
        self._writer.open_plain()
        self._fit()
        self._text.add(self.turn.text)

    def _fit(self) -> None:
        widest = round(self.width() * 0.85) - 2 * Space.L
        metrics = QFontMetricsF(theme.font(Size.BODY))
        # A long text is wide for sure; a short one is measured.
        text = self.turn.text
        lines = text.split("\n") if len(text) < _LONG else []
        ideal = max((metrics.horizontalAdvance(line) for line in lines), default=widest)
        self._view.setFixedWidth(max(24, min(math.ceil(ideal) + 2, widest)))


class AnswerView(QWidget):
    """An answer while it comes and afterwards: reasoning, text, footer, what went wrong.

    The text is the turn's; `grow` and `finish` tell that there is more of it to show.
    """

    link_chosen = Signal(str)
    again_wanted = Signal()

    def __init__(self, turn: Turn, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.turn = turn
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self._palette = theme.current()
        self._finished = False
        self._begun = False  # whether there is any of the text, apart from the thinking
        self._rendering = Sliced(self, self._render)
        self._failure: Notice | None = None
        self._thinking = QElapsedTimer()
        self._thought_ms = 0

        self._name = QLabel("Slipstream")
        self._name.setFont(theme.font(Size.CONTROL, QFont.Weight.DemiBold))
        self._name.setMinimumHeight(Space.XL)  # as high as the row is with its buttons
        self._state = QLabel("reading the prompt …")
        self._state.setProperty("kind", "muted")
        self._think = IconButton(
            "chevron-right", "Show the thinking", kind="quiet", text="thinking …", size=14
        )
        self._think.setCheckable(True)
        self._think.hide()
        self._think.toggled.connect(self._fold)
        self._thoughts = TextView("Thinking of the answer", self._reasoning)
        self._thoughts_page = _beside_rule(self._thoughts)
        self._thoughts_page.hide()
        self._thoughts_writer = DocumentWriter(self._thoughts.document(), role="muted")
        self._body = TextView("Answer", lambda: turn.text)
        self._writer = DocumentWriter(self._body.document())
        self._stream = MarkdownStream(self._writer)
        self._highlighter = Highlighter(self._body.document())
        self._coloured = 0
        for view in (self._body, self._thoughts):
            view.link_chosen.connect(self.link_chosen)

        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(Space.XS)
        self._layout.addLayout(_row(self._name, self._think, self._state))
        self._layout.addWidget(self._thoughts_page)
        self._layout.addWidget(self._body)
        self._layout.addWidget(self._make_footer())
        self._body.hide()
        if turn.said:
            self.grow(turn.text, turn.reasoning)
        if turn.end is not End.COMING:
            self.finish()

    # --- what comes in ----------------------------------------------------------

    @property
    def rendered(self) -> bool:
        """Whether all text that came is on the page."""
        return not self._rendering.waiting

    def grow(self, text: str, reasoning: str) -> None:
        """Show what came at the end of the turn's text and reasoning."""
        if reasoning:
            self._add_reasoning(reasoning)
        if text:
            if self._thinking.isValid() and not self._begun:
                self._stop_thinking()
            self._begun = True
            self._state.hide()
            self._body.show()
            self._rendering.add(text)

    def finish(self) -> None:
        """Show how the answer was made, or what went wrong: what came before stays valid."""
        self._finished = True
        self._state.hide()
        if self._thinking.isValid():
            self._stop_thinking()
        self._rendering.add("")  # the end is to be rendered too
        self._footer.show()
        self._copy.setVisible(bool(self.turn.text))
        note = words.finish_note(self.turn)
        self._note.setText(note)
        self._note.setVisible(bool(note))
        figures = self.turn.figures if isinstance(self.turn.figures, Figures) else None
        self._facts.setVisible(figures is not None)
        self._why.setVisible(figures is not None and figures.totals.rounds > 0)
        if figures is not None:
            self._facts.setText(words.footer(figures))
            self._facts.setAccessibleName(f"{words.footer(figures)} {note}".strip())
            self._details.setText(words.details(figures))
        if isinstance(self.turn.error, SlipstreamError):
            self._show_failure(self.turn.error)

    def set_last(self, last: bool) -> None:
        """Only the last answer can be made again."""
        self._again.setVisible(last)

    # --- Qt ---------------------------------------------------------------------

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._palette is not theme.current():
            self._rewrite()

    # --- own --------------------------------------------------------------------

    def _make_footer(self) -> QWidget:
        self._footer = QWidget()
        self._facts = QLabel()
        self._facts.setMinimumWidth(1)  # a narrow window cuts it, not the text above
        self._facts.setProperty("kind", "caption")
        self._facts.setFont(theme.font(Size.SMALL))
        self._note = QLabel()
        self._note.setProperty("kind", "caption")
        self._note.setFont(theme.font(Size.SMALL, QFont.Weight.Medium))
        self._why = IconButton("info", "Why this speed?", kind="quiet", text="why?", size=14)
        self._why.setFont(theme.font(Size.SMALL))
        self._why.setCheckable(True)
        self._again = IconButton("again", "Answer again", size=16)
        self._copy = IconButton("copy", "Copy the answer", size=16)
        self._details = QLabel()
        self._details.setProperty("kind", "caption")
        self._details.setFont(theme.font(Size.SMALL))
        self._details.setWordWrap(True)
        self._details.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._details.hide()
        self._why.toggled.connect(self._details.setVisible)
        self._again.clicked.connect(self.again_wanted)
        self._copy.clicked.connect(self._copy_answer)
        column = QVBoxLayout(self._footer)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(Space.XS)
        row = _row(self._facts, self._why, self._again, self._copy)
        column.addWidget(self._note)
        column.addLayout(row)
        column.addWidget(self._details)
        self._footer.hide()
        return self._footer

    def _show_failure(self, error: SlipstreamError) -> None:
        self._failure = Notice(error.message, error.remedy, level="error", closable=False)
        self._layout.insertWidget(self._layout.indexOf(self._footer), self._failure)
        self._failure.show()

    def _reasoning(self) -> str:
        """As it is shown: models begin with empty lines."""
        return self.turn.reasoning.lstrip("\n")

    def _add_reasoning(self, text: str) -> None:
        if self._think.isHidden():
            self._thinking.start()
            self._think.show()
            self._state.hide()
            self._thoughts_writer.open_plain()
        if self._thoughts.document().isEmpty():
            text = text.lstrip("\n")
        self._thoughts_writer.more(text)
        if not self._begun:
            self._thought_ms = self._thinking.elapsed()
            self._think.setText(f"thinking for {self._thought_ms / 1000:.0f} s")

    def _stop_thinking(self) -> None:
        self._thought_ms = self._thinking.elapsed()
        self._thinking.invalidate()
        seconds = round(self._thought_ms / 1000)
        self._think.setText(f"thought for {seconds} s" if seconds else "thought for a moment")

    def _fold(self, open_: bool) -> None:
        self._thoughts_page.setVisible(open_)
        self._think.set_icon("chevron-down" if open_ else "chevron-right")
        self._think.set_label("Hide the thinking" if open_ else "Show the thinking")

    def _render(self, piece: str) -> None:
        self._stream.feed(piece)
        if self._finished and not self._rendering.waiting:
            self._stream.finish()
        self._body.decorate(list(self._writer.decorations))
        self._colour_closed()

    def _colour_closed(self) -> None:
        closed = [d for d in self._writer.closed if d.kind is Kind.CODE and not d.open]
        for code in closed[self._coloured :]:
            self._highlighter.add(code)
        self._coloured = len(closed)

    def _rewrite(self) -> None:
        """Write everything again in the palette's new colours."""
        self._palette = theme.current()
        self._rendering.clear()
        self._highlighter.clear()
        self._coloured = 0
        self._writer.clear()
        self._stream = MarkdownStream(self._writer)
        self._thoughts_writer.clear()
        if self.turn.reasoning:
            self._thoughts_writer.open_plain()
            self._thoughts_writer.more(self._reasoning())
        self._rendering.add(self.turn.text)

    def _copy_answer(self) -> None:
        QGuiApplication.clipboard().setText(self.turn.text)
        self._copy.confirm()

    def sizeHint(self) -> QSize:
        return QSize(theme.COLUMN, super().sizeHint().height())


def _beside_rule(widget: QWidget) -> QWidget:
    """`widget` with a quiet line at its left, which tells it from what follows."""
    result = QWidget()
    rule = QFrame()
    rule.setProperty("kind", "rule")
    rule.setFixedWidth(2)
    row = QHBoxLayout(result)
    row.setContentsMargins(0, Space.XS, 0, Space.M)
    row.setSpacing(Space.M)
    row.addWidget(rule)
    row.addWidget(widget)
    return result


def _row(*widgets: QWidget) -> QHBoxLayout:
    result = QHBoxLayout()
    result.setContentsMargins(0, 0, 0, 0)
    result.setSpacing(Space.XS)
    for widget in widgets:
        result.addWidget(widget)
    result.addStretch(1)
    return result
