"""The two kinds of message: the user's bubble and the answer on the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.conversation import End, Turn
from app.drafting import Draft
from app.engine import Figures
from app.errors import ContextFullError, SlipstreamError
from app.ui import task
from app.ui.chat.chips import file_chips
from app.ui.chat.editor import QuestionEditor
from app.ui.chat.live_turn import LiveTurn, goes_on
from app.ui.look import theme, why, words
from app.ui.look.controls import holds_focus
from app.ui.look.flow import Flow
from app.ui.look.icons import IconButton
from app.ui.look.labels import Line, beside_rule, lines
from app.ui.look.language import tr
from app.ui.look.notice import Notice
from app.ui.look.theme import Size, Space
from app.ui.markdown import inline
from app.ui.markdown.markdown_view import MarkdownView
from app.ui.markdown.plain_view import PlainView
from app.ui.markdown.text_view import TextView

_LONG: Final = 2_000
"""Characters from which on a question takes all the width there is."""

FOLDED: Final = 12
"""Lines that are seen of a long question..."""

_HIDDEN: Final = 6
"""... and that it must have more, or folding it would spare nothing."""


class Branches(QWidget):
    """Which of several turns is shown: ‹ 2/3 ›. Hidden where there is one."""

    chosen = Signal(object)  # Turn

    def __init__(self, noun: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._turns: Sequence[Turn] = ()
        self._at = 0
        self._back = IconButton(
            "chevron-left", tr("The {which} before").format(which=tr(noun)), size=14
        )
        self._back.setProperty("flush", "left")
        self._on = IconButton(
            "chevron-right", tr("The next {which}").format(which=tr(noun)), size=14
        )
        self._count = QLabel()
        self._count.setProperty("kind", "caption")
        self._count.setFont(theme.font(Size.SMALL))
        self._noun = noun
        self._back.clicked.connect(lambda: self._go(-1))
        self._on.clicked.connect(lambda: self._go(1))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, Space.XS, 0)
        row.setSpacing(0)
        for widget in (self._back, self._count, self._on):
            row.addWidget(widget)
        self.hide()

    def show_turns(self, turns: Sequence[Turn], shown: Turn) -> None:
        self._turns = turns
        self._at = next((i for i, t in enumerate(turns) if t is shown), 0)
        self._count.setText(f"{self._at + 1}/{len(turns)}")
        told = tr("{which} {n} of {all}")
        self._count.setAccessibleName(
            told.format(which=tr(self._noun), n=self._at + 1, all=len(turns))
        )
        self._back.setEnabled(self._at > 0)
        self._on.setEnabled(self._at + 1 < len(turns))
        self.setVisible(len(turns) > 1)

    def _go(self, step: int) -> None:
        self.chosen.emit(self._turns[self._at + step])


class Question(QWidget):
    """What the user wrote, as it is, in a bubble as wide as it needs. It can be put anew.

    A long one is folded, and so are the files in it: what comes after it is near.
    """

    link_chosen = Signal(str)
    chosen = Signal(object)  # Turn
    unfolded = Signal(bool)  # whether what is folded in it is shown
    edited = Signal(object, str)  # Turn, the new text
    focus_left = Signal()  # what has the focus is about to go
    removed = Signal(object)  # Turn

    def __init__(self, turn: Turn, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.turn = turn
        self.send_with: Callable[[], str] = lambda: "enter"  # the key that asks it anew
        self._editor: QuestionEditor | None = None
        self._palette = theme.current()
        self._parts = Draft.of_message(turn.text)
        self._view = PlainView(tr("Your question"), lambda: self._text)
        self._view.link_chosen.connect(self.link_chosen)
        self._bubble = QFrame()
        self._bubble.setProperty("kind", "bubble")
        self._seen = QWidget()  # the part of the text that is shown
        self._view.setParent(self._seen)
        self._view.installEventFilter(self)
        self._rewriting = False  # the text is there again, and not yet as long as it is
        self._view.grown.connect(self._written)
        self._view.caret_moved.connect(self._unfold_to_caret)
        self._fold = IconButton(
            "chevron-down", "Show the whole question", kind="fold", text="Show all", size=14
        )
        self._fold.setCheckable(True)
        self._fold.toggled.connect(self._unfold)
        self._fold.hide()
        inside = QVBoxLayout(self._bubble)
        inside.setContentsMargins(Space.L, 11, Space.L, 9)
        inside.setSpacing(Space.XS)
        inside.addWidget(self._seen)
        self._chips = file_chips(self._parts.attachments)
        for chip in self._chips:
            chip.clicked.connect(self.unfold)
            inside.addWidget(chip, 0, Qt.AlignmentFlag.AlignLeft)
        if self._chips:  # they have no leading below them, as text has
            inside.setContentsMargins(Space.L, 11, Space.L, Space.M)
        inside.addWidget(self._fold, 0, Qt.AlignmentFlag.AlignLeft)
        self._branches = Branches("question")
        self._branches.chosen.connect(self.chosen)
        self._edit = IconButton("edit", "Edit and ask again", size=16)
        self._copy = IconButton("copy", "Copy the question", size=16)
        self._delete = IconButton("trash", "Delete the question and its answer", size=16)
        self._delete.setProperty("flush", "right")
        self._edit.clicked.connect(self.start_editing)
        self._copy.clicked.connect(self._copy_text)
        self._delete.clicked.connect(lambda: self.removed.emit(turn))
        self._tools = QWidget()
        tools = QHBoxLayout(self._tools)
        tools.setContentsMargins(0, 0, 0, 0)
        tools.setSpacing(0)
        tools.addStretch(1)
        for widget in (self._branches, self._edit, self._copy, self._delete):
            tools.addWidget(widget)
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self._bubble)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2)
        self._column.addLayout(row)
        self._column.addWidget(self._tools)
        self._fit()
        self._view.add(self._text)
        self._seen.setVisible(bool(self._text))

    @property
    def busy(self) -> bool:
        """Whether it is being edited."""
        return self._editor is not None

    @property
    def body(self) -> PlainView:
        return self._view

    @property
    def texts(self) -> Sequence[tuple[TextView, bool]]:
        """What shows its texts, each with whether that is thinking."""
        return ((self._view, False),)

    @property
    def rendered(self) -> bool:
        """Whether all of its text is on the page."""
        return self._view.rendered

    def unfold(self) -> None:
        """Show also what is folded in it: the rest of a long one."""
        self._fold.setChecked(True)

    def show_place(self, thinking: bool) -> None:
        """Have a place in its text seen; it has no thinking."""
        self.unfold()

    def set_beside(self, turns: Sequence[Turn]) -> None:
        self._branches.show_turns(turns, self.turn)

    def start_editing(self) -> None:
        """Write in the bubble's place: sending puts the question anew, Escape leaves it, and
        what was written is there again the next time."""
        if self._editor is not None:
            return
        self._editor = QuestionEditor(self.turn.draft or self.turn.text, self.send_with())
        self._editor.left.connect(self.stop_editing)
        self._editor.given_up.connect(self._give_up)
        self._editor.kept.connect(self._keep)
        self._editor.sent.connect(lambda text: self.edited.emit(self.turn, text))
        self._bubble.hide()
        self._tools.hide()
        self._column.setContentsMargins(0, 0, 0, Space.L)  # as much air as with its buttons
        self._column.addWidget(self._editor)
        self._editor.start()

    def stop_editing(self) -> None:
        if self._editor is not None:
            if holds_focus(self._editor):
                self.focus_left.emit()
            self._editor.hide()
            self._editor.deleteLater()
            self._editor = None
            self._column.setContentsMargins(0, 0, 0, 0)
            self._bubble.show()
            self._tools.show()

    def _give_up(self) -> None:
        self.stop_editing()
        self.turn.draft = ""

    def _keep(self, text: str) -> None:
        self.turn.draft = text if text != self._parts.message() else ""

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._palette is not theme.current():
            self._palette = theme.current()
            self._rewriting = True
            self._fit()
            self._view.rewrite()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._view and event.type() == QEvent.Type.Resize:
            self._show_part()
        return super().eventFilter(watched, event)

    def _written(self) -> None:
        if self._rewriting and self._view.rendered:
            self._rewriting = False
            self._show_part()

    @property
    def _text(self) -> str:
        """What is to be read of it now."""
        whole = self._fold.isChecked() or not self._chips
        return self.turn.text if whole else self._parts.text

    def _unfold(self, whole: bool) -> None:
        if self._chips:
            if any(chip.hasFocus() for chip in self._chips):  # it goes: its text can be hidden
                self._fold.show()
                self._fold.setFocus()
            self._rewriting = bool(self._text)
            self._fit()
            self._view.rewrite()
            self._seen.setVisible(bool(self._text))
            for chip in self._chips:
                chip.setVisible(not whole)
        self._fold.set_icon("chevron-up" if whole else "chevron-down")
        self._fold.set_label("Show its beginning" if whole else "Show the whole question")
        self._fold.setText(tr("Show less" if whole else "Show all"))
        self._show_part()
        self.unfolded.emit(whole)

    def _unfold_to_caret(self) -> None:
        if not self._seen.rect().contains(self._view.cursorRect().center()):
            self.unfold()

    def _show_part(self) -> None:
        if self._rewriting:  # short for a moment: the button would go, and with it the focus
            return
        line = QFontMetricsF(theme.font(Size.BODY)).lineSpacing() * theme.LINE_HEIGHT / 100
        size, most = self._view.size(), round(FOLDED * line)
        long = size.height() > most + _HIDDEN * line
        if long and not self._fold.isChecked():
            below = self._view.cursorForPosition(QPoint(0, most))  # no line is cut
            size.setHeight(self._view.cursorRect(below).top())
        self._seen.setFixedSize(size)
        self._fold.setVisible(long or bool(self._chips and self._fold.isChecked()))

    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self.turn.text)
        self._copy.confirm("The question is copied.")

    def _fit(self) -> None:
        widest = round(self.width() * 0.85) - 2 * Space.L
        metrics = QFontMetricsF(theme.font(Size.BODY))
        # A long text is wide for sure; a short one is measured.
        text = self._text
        lines = text.split("\n") if len(text) < _LONG else []
        ideal = max((metrics.horizontalAdvance(line) for line in lines), default=widest)
        self._view.setFixedWidth(max(24, min(math.ceil(ideal) + 2, widest)))


class AnswerView(QWidget):
    """An answer while it comes and afterwards: reasoning, text, footer, what went wrong.

    The text is the turn's; `grow` and `finish` tell that there is more of it to show.
    """

    link_chosen = Signal(str)
    wrap_chosen = Signal(bool)  # of long lines of code
    again_wanted = Signal(object)  # Turn
    go_on_wanted = Signal(object)  # Turn
    shorter_wanted = Signal(object)  # Turn: once more, with less of the chat before it
    chosen = Signal(object)  # Turn
    unfolded = Signal(bool)  # whether what is folded in it is shown
    removed = Signal(object)  # Turn
    grown = Signal()  # more of the text is on the page

    def __init__(self, turn: Turn, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.turn = turn
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self._palette = theme.current()
        self._finished = False
        self._begun = False  # whether there is any of the text, apart from the thinking
        self._failure: Notice | None = None

        self._name = QLabel("Slipstream")
        self._name.setFont(theme.font(Size.CONTROL, QFont.Weight.DemiBold))
        self._name.setMinimumHeight(Space.XL)  # as high as the row is with its buttons
        self._state = QLabel(tr("waits for its turn …"))
        self._state.setProperty("kind", "muted")
        self._think = IconButton(
            "chevron-right", "Show the thinking", kind="quiet", text="thinking …", size=14
        )
        self._think.setCheckable(True)
        self._think.hide()
        self._think.toggled.connect(self._fold)
        self._now = IconButton(
            "forward", "Answer now: think no more", kind="quiet", text="Answer now", size=14
        )
        self._now.hide()
        self._now.clicked.connect(self._answer_now)
        self._live: LiveTurn | None = None  # while it comes
        self._thoughts = PlainView(tr("Thinking of the answer"), self._reasoning, "muted")
        self._thoughts_page = beside_rule(self._thoughts)
        self._thoughts_page.hide()
        self._body = MarkdownView(tr("Answer"), lambda: turn.text)
        self._body.grown.connect(self.grown)
        for view in (self._body, self._thoughts):
            view.link_chosen.connect(self.link_chosen)
        self._body.wrap_chosen.connect(self.wrap_chosen)

        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(Space.XS)
        head = Flow(spacing=Space.XS)  # in a narrow window large words stand below each other
        for widget in (self._name, self._think, self._now, self._state):
            head.addWidget(widget)
        self._layout.addLayout(head)
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
        return self._body.rendered and self._thoughts.rendered

    def grow(self, text: str, reasoning: str) -> None:
        """Show what came at the end of the turn's text and reasoning."""
        if reasoning:
            self._add_reasoning(reasoning)
        if text:
            if not self._begun:
                self._begun = True
                self._show_thought()
            self._state.hide()
            self._body.show()
            self._body.add(text)

    def finish(self) -> None:
        """Show how the answer was made, or what went wrong: what came before stays valid."""
        self._finished, self._live = True, None
        self._state.hide()
        self._show_thought()
        self._body.finish()
        self._footer.show()
        self._copy.setVisible(bool(self.turn.text))
        self._go_on.setVisible(goes_on(self.turn))
        note = words.finish_note(self.turn)
        self._note.setText(tr(note))
        self._note.setVisible(bool(note))
        figures = self.turn.figures if isinstance(self.turn.figures, Figures) else None
        self._facts.setVisible(bool(figures and words.footer(figures)))
        self._why.setVisible(figures is not None and figures.totals.rounds > 0)
        if figures is not None:
            self._facts.setText(words.footer(figures))
            self._facts.setAccessibleName(f"{words.footer(figures)} {note}".strip())
            reasons, facts = why.reasons(figures), words.details(figures).split("\n")
            self._details.setText(lines(reasons, facts))
            self._details.setAccessibleName(" ".join([*reasons, *facts]))
        if isinstance(self.turn.error, SlipstreamError):
            self._show_failure(self.turn.error)

    def follow(self, live: LiveTurn) -> None:
        """Show the answer while it waits, and while it comes."""
        if not inline.prepared():
            task.run(self, lambda *_: inline.prepare(), lambda _: None, lambda _: None)
        if live.waiting:
            live.began.connect(self._begin)
        else:
            self._begin()
        self._live = live
        self._now.setEnabled(True)
        live.grew.connect(self.grow)
        live.ended.connect(self.finish)

    def set_beside(self, turns: Sequence[Turn]) -> None:
        self._branches.show_turns(turns, self.turn)
        one = "Delete the question and its answer" if len(turns) < 2 else "Delete this answer"
        self._delete.set_label(one)

    @property
    def busy(self) -> bool:
        """Whether more of it is to come."""
        return not self._finished

    @property
    def body(self) -> MarkdownView:
        return self._body

    @property
    def texts(self) -> Sequence[tuple[TextView, bool]]:
        """What shows its texts, each with whether that is thinking."""
        return (self._thoughts, True), (self._body, False)

    def unfold(self) -> None:
        """Show also what is folded in it: the thinking."""
        self._think.setChecked(True)

    def show_place(self, thinking: bool) -> None:
        """Have a place in its text seen, or in its thinking."""
        if thinking:
            self.unfold()

    def _begin(self) -> None:
        self._state.setText(tr("reading the prompt …"))

    # --- Qt ---------------------------------------------------------------------

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._palette is not theme.current():
            self._palette = theme.current()
            self._thoughts.rewrite()
            self._body.rewrite()

    # --- own --------------------------------------------------------------------

    def _make_footer(self) -> QWidget:
        self._footer = QWidget()
        self._facts = Line()
        self._facts.setProperty("kind", "caption")
        self._facts.setFont(theme.font(Size.SMALL))
        self._note = QLabel()
        self._note.setProperty("kind", "caption")
        self._note.setFont(theme.font(Size.SMALL, QFont.Weight.Medium))
        self._why = IconButton("info", "Why this speed?", kind="quiet", text="why?", size=14)
        self._why.setFont(theme.font(Size.SMALL))
        self._why.setCheckable(True)
        self._again = IconButton("again", "Answer again", size=16)
        self._again.setProperty("flush", "left")
        self._copy = IconButton("copy", "Copy the answer", size=16)
        self._delete = IconButton("trash", "Delete this answer", size=16)
        self._go_on = IconButton(
            "forward", "Go on with this answer", kind="quiet", text="Go on", size=14
        )
        self._go_on.setFont(theme.font(Size.SMALL))
        self._branches = Branches("answer")
        self._branches.chosen.connect(self.chosen)
        self._delete.clicked.connect(lambda: self.removed.emit(self.turn))
        self._go_on.clicked.connect(lambda: self.go_on_wanted.emit(self.turn))
        self._details = QLabel()
        self._details.setProperty("kind", "caption")
        self._details.setFont(theme.font(Size.SMALL))
        self._details.setWordWrap(True)
        self._details.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._details.hide()
        self._why.toggled.connect(self._details.setVisible)
        self._again.clicked.connect(lambda: self.again_wanted.emit(self.turn))
        self._copy.clicked.connect(self._copy_answer)
        column = QVBoxLayout(self._footer)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(Space.XS)
        row = _row(self._branches, self._again, self._copy, self._delete, self._go_on)
        column.addWidget(self._note)
        column.addLayout(_row(self._facts, self._why))
        column.addWidget(self._details)
        column.addLayout(row)
        self._footer.hide()
        return self._footer

    def _show_failure(self, error: SlipstreamError) -> None:
        self._failure = Notice(error.message, error.remedy, level="error", closable=False)
        if isinstance(error, ContextFullError):
            button = self._failure.add_button("Drop oldest")
            button.clicked.connect(lambda: self.shorter_wanted.emit(self.turn))
        self._layout.insertWidget(self._layout.indexOf(self._footer), self._failure)
        self._failure.show()

    def _reasoning(self) -> str:
        """As it is shown: models begin with empty lines."""
        return self.turn.reasoning.lstrip("\n")

    def _add_reasoning(self, text: str) -> None:
        if self._think.isHidden():
            self._think.show()
            self._state.hide()
        if self._thoughts.document().isEmpty():
            text = text.lstrip("\n")
        self._thoughts.add(text)
        self._show_thought()

    def _show_thought(self) -> None:
        """How long it took, by the turn's own clock."""
        thinking = not self._begun and not self._finished
        self._think.setText(words.thought(self.turn.thought_ms, ongoing=thinking))
        self._now.setVisible(thinking and self._live is not None)

    def _answer_now(self) -> None:
        if self._live is not None:
            if self._now.hasFocus():  # else it goes to whatever Qt finds next
                self._think.setFocus(Qt.FocusReason.OtherFocusReason)
            self._now.setEnabled(False)
            self._live.answer_now()

    def _fold(self, open_: bool) -> None:
        self._thoughts_page.setVisible(open_)
        self._think.set_icon("chevron-down" if open_ else "chevron-right")
        self._think.set_label("Hide the thinking" if open_ else "Show the thinking")
        self.unfolded.emit(open_)

    def _copy_answer(self) -> None:
        QGuiApplication.clipboard().setText(self.turn.text)
        self._copy.confirm("The answer is copied.")

    def sizeHint(self) -> QSize:
        return QSize(theme.COLUMN, super().sizeHint().height())


def _row(*widgets: QWidget) -> QHBoxLayout:
    result = QHBoxLayout()
    result.setContentsMargins(0, 0, 0, 0)
    result.setSpacing(Space.XS)
    for widget in widgets:
        result.addWidget(widget)
    result.addStretch(1)
    return result
