"""The messages of one conversation, newest at the bottom, or the welcome page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent, QTextCursor
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QScrollArea,
    QWidget,
)

from app.conversation import Role, Turn
from app.ui.chat.divider import HEIGHT, Divider
from app.ui.chat.live_turn import LiveTurn
from app.ui.chat.message import FOLDED, AnswerView, Question
from app.ui.chat.welcome import Welcome
from app.ui.look.column import edge
from app.ui.look.controls import holds_focus, is_followed, link_tabs
from app.ui.look.icons import IconButton
from app.ui.look.language import tr
from app.ui.look.theme import Space
from app.ui.markdown.dragging import DragScroll
from app.ui.markdown.text_view import TextView

_NEAR_S: Final = 0.01
"""How long one turn of the event loop works at messages that are not seen yet..."""

_STRIP: Final = 40
"""Pixels at the bottom that the button to the newest text has for itself: it covers no words."""

_SEEN_S: Final = 0.02
"""... and such that are, while the newest is followed: it stands at once, what is above it comes
with the next turn. Elsewhere what is seen is made whatever it takes, or the view would move."""


class _Page(QWidget):
    """Holds the messages; it lays out nothing, and tells when one of them changed its size."""

    changed = Signal()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.changed.emit()
        return super().event(event)


class ChatView(QScrollArea):
    """Only the messages near what is seen are widgets: the others are a height, measured when
    they were seen and estimated before. What is seen stays where it is while that changes.
    """

    suggested = Signal(str)
    model_wanted = Signal()  # the one that is offered
    link_chosen = Signal(str)
    wrap_chosen = Signal(bool)  # of long lines of code
    again_wanted = Signal(object)  # Turn: an answer
    go_on_wanted = Signal(object)  # Turn: an answer that broke off
    shorter_wanted = Signal(object)  # Turn: an answer for which the chat is too long
    edited = Signal(object, str)  # Turn: a question, and what it is to be
    chosen = Signal(object)  # Turn: beside the one that is shown
    removed = Signal(object)  # Turn
    whole_wanted = Signal()  # the model is to read all of it again
    focus_left = Signal()  # what has the focus is about to go

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Conversation"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Page Up and Down scroll it from anywhere
        self.live_of: Callable[[Turn], LiveTurn | None] = lambda turn: None
        self.send_with: Callable[[], str] = lambda: "enter"
        self._follow = True  # new text keeps the view at the bottom
        self._at = 0  # where the view was last
        self._turns: list[Turn] = []
        self._beside: Callable[[Turn], Sequence[Turn]] = lambda turn: (turn,)
        self._heights: dict[str, int] = {}  # by the turn's id, as measured or else estimated
        self._shown: dict[str, Question | AnswerView] = {}
        self._unfolded: set[str] = set()  # ids of turns of which all is shown
        self._width = 0
        # Of the line at the top when the width was another one last.
        self._read: tuple[TextView, QTextCursor] | None = None
        self._arranging = False
        self._made, self._began = False, 0.0  # of one turn: whether any was made, and its begin
        # Qt is still in the middle of laying out when it tells a new size.
        self._settle = QTimer(self, interval=0, singleShot=True)
        self._settle.timeout.connect(self._arrange)

        self._page = _Page()
        self._page.setObjectName("scrolled")
        self._page.changed.connect(self._settle.start)
        self._welcome = Welcome(self._page)
        self._welcome.suggested.connect(self.suggested)
        self._welcome.model_wanted.connect(self.model_wanted)
        self._start: Turn | None = None  # the first that a model is given, where others are before
        self._divider = Divider(self._page)
        self._divider.undone.connect(self.whole_wanted)
        self.setWidget(self._page)

        self._down = IconButton(
            "arrow-down", "Go to the newest text", self, kind="outline", size=16
        )
        self._down.clicked.connect(self.go_down)
        self._down.hide()
        self.verticalScrollBar().valueChanged.connect(self._moved)
        self._drag = DragScroll(self)

    @property
    def answers(self) -> list[AnswerView]:
        """Those that are widgets, in order."""
        shown = (self._shown.get(t.id) for t in self._turns)
        return [m for m in shown if isinstance(m, AnswerView)]

    @property
    def messages(self) -> list[Question | AnswerView]:
        """The same of all kinds."""
        return [self._shown[t.id] for t in self._turns if t.id in self._shown]

    def answer_of(self, turn: Turn) -> AnswerView | None:
        """What shows `turn`, if it is an answer near what is seen."""
        shown = self._shown.get(turn.id)
        return shown if isinstance(shown, AnswerView) else None

    def show_path(
        self,
        turns: Sequence[Turn],
        beside: Callable[[Turn], Sequence[Turn]] | None = None,
        start: Turn | None = None,
    ) -> None:
        """Show these turns, and go to the newest where it is a new question.

        `beside` gives the turns that stand beside one, `start` is the first that a model is
        given where others are before it. What is shown already stays as it is.
        """
        self._start = start
        self._beside = beside or (lambda turn: (turn,))
        before = {t.id for t in self._turns}
        self._turns = [t for t in turns if t.role is not Role.SYSTEM]
        now = {t.id for t in self._turns}
        for id_ in [i for i in self._shown if i not in now]:
            self._drop(id_)
        self._heights = {i: h for i, h in self._heights.items() if i in now}
        if self._turns and holds_focus(self._welcome):
            self.focus_left.emit()
        self._welcome.setVisible(not self._turns)
        for message in self._shown.values():
            message.set_beside(self._beside(message.turn))
        if any(t.role is Role.USER and t.id not in before for t in self._turns):
            self._follow = True
        self._arrange()

    def offer_model(self, label: str, why: str) -> None:
        """See `Welcome.offer_model`."""
        if not label and holds_focus(self._welcome):
            self.focus_left.emit()
        self._welcome.offer_model(label, why)

    def renew(self, turn: Turn) -> None:
        """Show a turn as it is now: it is begun, or gone on with."""
        if turn.id in self._shown:
            self._drop(turn.id)
            self._arrange()

    def reveal(self, turn: Turn) -> Question | AnswerView | None:
        """Scroll to a turn of the path; its message, None where it is not of the path."""
        if turn not in self._turns:
            return None
        self._follow = False
        for _ in range(3):  # what is near it is measured on the way
            top = self._tops()[self._turns.index(turn)]
            self.verticalScrollBar().setValue(max(0, top - Space.XL))
            self._arrange()
        return self._shown.get(turn.id)

    def show_point(self, text: QWidget, point: QPoint) -> None:
        """Scroll so far that a point of a message's text is well seen."""
        self._arrange()  # it may have grown just now: there is nothing yet to scroll to
        y = text.mapTo(self._page, point).y()
        bar, room = self.verticalScrollBar(), self.viewport().height()
        if not bar.value() + Space.XL < y < bar.value() + room - 2 * Space.XL:
            self._follow = False
            bar.setValue(y - room // 3)

    def show_caret(self, text: TextView) -> None:
        """Scroll just so far that the caret in a message's text is seen."""
        self._arrange()
        caret, bar = text.cursorRect(), self.verticalScrollBar()
        top = text.mapTo(self._page, caret.topLeft()).y() - Space.XL
        bottom = top + caret.height() + 2 * Space.XL
        bar.setValue(min(top, max(bar.value(), bottom - self.viewport().height())))

    def order_tabs(self) -> None:
        """Have Tab go through the messages as they are read: the newest are made first."""
        link_tabs(self._stops())

    def go_down(self) -> None:
        self._follow = True
        self._arrange()

    # --- Qt ---------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel:  # over the strip, which Qt takes for a frame
            return QApplication.sendEvent(self.verticalScrollBar(), event)
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._arrange()

    # --- own --------------------------------------------------------------------------

    def _arrange(self) -> None:
        """Make what is near what is seen, let go what is far, and put each in its place."""
        if self._arranging or not self.isVisible():
            return
        self._arranging = True
        try:
            anchor = None if self._follow else self._anchor()
            self._place_button()
            if self._set_width() and anchor is not None and self._turns:
                anchor = self._rewrapped(*anchor)
            self._made, self._began = False, time.thread_time()
            for _ in range(4):
                if not self._fill(anchor):
                    break
        finally:
            self._at = self.verticalScrollBar().value()
            self._arranging = False

    def _place_welcome(self) -> int:
        """Px that it needs with the air around it, which a small window has to scroll."""
        room = self.viewport().height()
        needed = self._welcome.needs(self._width) + 2 * Space.XL
        height = max(room, needed)
        self._welcome.setGeometry(self._left(), Space.XL, self._width, height - 2 * Space.XL)
        return needed

    def _fill(self, anchor: tuple[int, int] | None) -> bool:
        """One pass; whether a height was another one than thought."""
        tops = self._tops()
        total = max(tops[-1], self.viewport().height()) if self._turns else self._place_welcome()
        self._page.setMinimumHeight(total)
        self._place_divider(tops)
        if not self._turns:
            return False
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, total - self.viewport().height()))
        if anchor is None:
            bar.setValue(bar.maximum())
        else:
            bar.setValue(tops[anchor[0]] + anchor[1])
        seen, room = bar.value(), self.viewport().height()
        changed = False
        # Where there is less than a page, it stands at the top.
        turns = list(enumerate(self._turns))
        for at, turn in reversed(turns) if anchor is None else turns:
            near = tops[at + 1] >= seen - room and tops[at] <= seen + 2 * room
            far = tops[at + 1] < seen - 3 * room or tops[at] > seen + 4 * room
            visible = tops[at + 1] >= seen and tops[at] <= seen + room
            new = turn.id not in self._shown
            can_wait = near and new and self._made and not (visible and anchor)
            if can_wait and self._spent() > (_SEEN_S if visible else _NEAR_S):
                self._settle.start()
            elif near or (turn.id in self._shown and (not far or self._needed(turn))):
                self._made |= new
                message = self._shown.get(turn.id) or self._make(turn)
                height = self._measure(message)
                if turn.id in self._unfolded and not message.rendered:  # it is made again
                    height = max(height, self._heights.get(turn.id, 0))
                changed |= height != self._heights.get(turn.id)
                self._heights[turn.id] = height
                message.setGeometry(self._left(), tops[at], self._width, height)
            elif turn.id in self._shown and far:
                self._drop(turn.id)
        return changed

    def _spent(self) -> float:
        """Seconds of work in this turn."""
        return time.thread_time() - self._began

    def _tops(self) -> list[int]:
        """Where each message begins, and where the last one ends."""
        tops, y = [], int(Space.XL)
        for turn in self._turns:
            if turn is self._start:
                y += HEIGHT
            tops.append(y)
            # Below a question stand its buttons, which are room already.
            gap = Space.XS if turn.role is Role.USER else Space.XL
            if turn.id not in self._heights:
                self._heights[turn.id] = self._estimate(turn)
            y += self._heights[turn.id] + gap
        return [*tops, y]

    def _place_divider(self, tops: Sequence[int]) -> None:
        at = next((i for i, turn in enumerate(self._turns) if turn is self._start), None)
        self._divider.setVisible(at is not None)
        if at is not None:
            self._divider.setGeometry(self._left(), tops[at] - HEIGHT, self._width, HEIGHT)

    def _anchor(self) -> tuple[int, int]:
        """The first message that is seen, and how far of it is above."""
        tops, seen = self._tops(), self.verticalScrollBar().value()
        at = next((i for i in range(len(self._turns)) if tops[i + 1] > seen), 0)
        return at, seen - tops[at]

    def _rewrapped(self, at: int, above: int) -> tuple[int, int]:
        """What `_anchor` gave before the width was another one, now: the line that is read stays.

        What of a message wraps and what does not is not spread evenly, so it goes by the text.
        """
        message = self._shown.get(self._turns[at].id)
        if message is None or above <= 0:
            return at, above
        before, line = message.height(), self._line_at(message, above)
        height = self._heights[message.turn.id] = self._measure(message)
        message.resize(self._width, height)
        if line is not None:
            text, sign, below = line
            return at, text.mapTo(message, text.cursorRect(sign).topLeft()).y() + below
        in_head = above < before // 2  # or else below its text
        return at, above if in_head else above + height - before

    def _line_at(
        self, message: Question | AnswerView, y: int
    ) -> tuple[TextView, QTextCursor, int] | None:
        """The line of a text that is at this height of its message, by a sign of it, and how far
        into it that is."""
        for text, _ in message.texts:
            inside = y - text.mapTo(message, QPoint(0, 0)).y()
            if text.isVisibleTo(message) and 0 <= inside < text.height():
                sign = text.cursorForPosition(QPoint(0, inside))
                line = text.cursorRect(sign).top()
                # Of many widths, one after the other, each would begin a line a little earlier.
                kept = self._read
                if not kept or kept[0] is not text or text.cursorRect(kept[1]).top() != line:
                    self._read = kept = text, sign
                return *kept, inside - line
        return None

    def _estimate(self, turn: Turn) -> int:
        """Of a message that was not seen yet."""
        a_line = max(20, self._width // 8)
        lines = len(turn.text) // a_line + turn.text.count("\n", 0, 20_000) + 1
        if turn.role is Role.ASSISTANT:
            return 24 * lines + 70
        return 24 * min(lines, FOLDED + 1) + 56

    def _needed(self, turn: Turn) -> bool:
        """Whether a message that is a widget must stay one: it grows, or is worked in."""
        message = self._shown[turn.id]
        return message.busy or holds_focus(message)

    def _measure(self, message: Question | AnswerView) -> int:
        layout = message.layout()
        assert layout is not None
        if message.width() != self._width:
            message.resize(self._width, message.height())
        layout.activate()
        if message.hasHeightForWidth():
            return message.heightForWidth(self._width)
        return message.sizeHint().height()

    def _make(self, turn: Turn) -> Question | AnswerView:
        message: Question | AnswerView
        if turn.role is Role.USER:
            message = Question(turn, self._page)
            message.send_with = self.send_with
            message.edited.connect(self.edited)
            message.focus_left.connect(self.focus_left)
        else:
            message = AnswerView(turn, self._page)
            message.again_wanted.connect(self.again_wanted)
            message.go_on_wanted.connect(self.go_on_wanted)
            message.shorter_wanted.connect(self.shorter_wanted)
            message.wrap_chosen.connect(self.wrap_chosen)
            message.grown.connect(self._arrange)  # before Qt paints it where it was
            if (live := self.live_of(turn)) is not None:
                message.follow(live)
        message.link_chosen.connect(self.link_chosen)
        message.chosen.connect(self.chosen)
        message.removed.connect(self.removed)
        message.set_beside(self._beside(turn))
        if turn.id in self._unfolded:
            message.unfold()
        message.unfolded.connect(partial(self._keep_unfolded, turn))
        for text, _ in message.texts:
            text.caret_moved.connect(partial(self.show_caret, text))
            self._drag.watch(text)
        message.resize(self._width, 40)
        message.show()
        self._shown[turn.id] = message
        return message

    def _stops(self) -> Iterator[QWidget]:
        """What Tab leads to on the page."""
        yield self._page
        for turn in self._turns:
            if turn is self._start:
                yield from _stops_in(self._divider)
            if turn.id in self._shown:
                yield from _stops_in(self._shown[turn.id])

    def _keep_unfolded(self, turn: Turn, unfolded: bool) -> None:
        """It stays so when its widget is let go and made again."""
        if unfolded:
            self._unfolded.add(turn.id)
            return
        self._unfolded.discard(turn.id)
        # Else as far below its top as before would be seen, which is in another message now.
        above = self._tops()[self._turns.index(turn)] < self.verticalScrollBar().value()
        if above:
            self.reveal(turn)

    def _drop(self, id_: str) -> None:
        message = self._shown.pop(id_)
        if holds_focus(message):
            self.focus_left.emit()
        message.hide()
        message.deleteLater()

    def _set_width(self) -> bool:
        """Whether it is another one."""
        # The view's own width: the scroll bar has its room beside the text, there or not.
        width = self.width() - 2 * edge(self.width())
        changed = width != self._width
        if changed:
            self._width = width
            self._heights.clear()
        return changed

    def _left(self) -> int:
        return edge(self.width())

    def _moved(self, value: int) -> None:
        if self._arranging:
            return
        self._follow = is_followed(self.verticalScrollBar(), self._at)
        self._at = value
        self._arrange()

    def _place_button(self) -> None:
        wanted = not self._follow and bool(self._turns) and self._tops()[-1] > self.height()
        self._down.setVisible(wanted)
        self.setViewportMargins(0, 0, 0, _STRIP if wanted else 0)
        self._down.adjustSize()
        x = (self.viewport().width() - self._down.width()) // 2
        self._down.move(x, self.height() - (_STRIP + self._down.height()) // 2)


def _stops_in(part: QWidget) -> Iterator[QWidget]:
    return (w for w in part.findChildren(QWidget) if w.focusPolicy() & Qt.FocusPolicy.TabFocus)
