"""The messages of one conversation, newest at the bottom, or the welcome page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.conversation import Role, Turn
from app.ui.chat.message import AnswerView, Question
from app.ui.look import theme
from app.ui.look.icons import IconButton
from app.ui.look.theme import COLUMN, Size, Space

SUGGESTIONS: Final = ("What is DFlash?", "Count to twenty", "Tell me a short story")

_NEAR: Final = 48
"""Pixels from the bottom within which new text keeps the view at the bottom."""


class Welcome(QWidget):
    suggested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        title = QLabel("What would you like to know?")
        title.setFont(theme.font(Size.FIGURE, QFont.Weight.DemiBold))
        title.setWordWrap(True)
        about = QLabel(
            "Everything runs on this machine. A small drafter proposes a block of tokens, the "
            "model checks the block in one pass, and the meters show it happening."
        )
        about.setProperty("kind", "muted")
        about.setFont(theme.font(Size.BODY))
        about.setWordWrap(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(Space.S)
        column.addStretch(3)
        column.addWidget(title)
        column.addWidget(about)
        column.addSpacing(Space.M)
        for text in SUGGESTIONS:
            button = QPushButton(text)
            button.setProperty("kind", "suggestion")
            button.setFont(theme.font(Size.BODY))
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            button.setAccessibleName(f"Ask: {text}")
            button.clicked.connect(lambda _=False, t=text: self.suggested.emit(t))
            column.addWidget(button)
        column.addStretch(4)


class _Page(QWidget):
    def minimumSizeHint(self) -> QSize:
        # Wrapped labels claim a height for their narrowest width, and the scroll area would
        # reserve it: where there are any, the height for the real width is asked for anyway.
        least = super().minimumSizeHint()
        return QSize(0, 0) if self.hasHeightForWidth() else least


class ChatView(QScrollArea):
    suggested = Signal(str)
    link_chosen = Signal(str)
    again_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Conversation")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Page Up and Down scroll it from anywhere
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._follow = True
        # Qt is still in the middle of laying out when it tells a new range.
        self._settle = QTimer(self, interval=0, singleShot=True)
        self._settle.timeout.connect(self._keep_down)
        self._shown: list[Question | AnswerView] = []

        page = _Page()
        page.setObjectName("scrolled")
        self._messages = QVBoxLayout(page)
        self._messages.setSpacing(Space.XL)
        self._welcome = Welcome()
        self._welcome.suggested.connect(self.suggested)
        self._messages.addWidget(self._welcome, 1)
        self.setWidget(page)

        self._down = IconButton("arrow-down", "Go to the newest text", self, kind="outline")
        self._down.clicked.connect(self.go_down)
        self._down.hide()
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._range_changed)
        bar.valueChanged.connect(self._moved)

    @property
    def answers(self) -> list[AnswerView]:
        return [m for m in self._shown if isinstance(m, AnswerView)]

    def answer_of(self, turn: Turn) -> AnswerView | None:
        """What shows `turn`, if it is an answer of the path that is shown."""
        return next((a for a in reversed(self.answers) if a.turn is turn), None)

    def show_path(self, turns: Sequence[Turn]) -> None:
        """Show these turns, and go to the newest where it is a new question.

        What is shown already and has the same place in the path stays as it is.
        """
        turns = [t for t in turns if t.role is not Role.SYSTEM]
        same = 0
        while same < min(len(turns), len(self._shown)) and self._shown[same].turn is turns[same]:
            same += 1
        for message in self._shown[same:]:
            self._messages.removeWidget(message)
            message.hide()
            message.deleteLater()
        del self._shown[same:]
        if turns and self._welcome.isVisibleTo(self):
            self._welcome.hide()
            self._messages.addStretch(1)
        if same and isinstance(last := self._shown[-1], AnswerView):
            last.set_last(same == len(turns))
        for turn in turns[same:]:
            self._add(turn, last=turn is turns[-1])
        if any(turn.role is Role.USER for turn in turns[same:]):
            self.go_down()

    def go_down(self) -> None:
        self._follow = True
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())
        self._down.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side = max(Space.XL, (self.viewport().width() - COLUMN) // 2)
        self._messages.setContentsMargins(side, Space.XL, side, Space.XL)
        self._place_button()

    def _add(self, turn: Turn, last: bool) -> None:
        message: Question | AnswerView
        if turn.role is Role.USER:
            message = Question(turn)
        else:
            message = AnswerView(turn)
            message.again_wanted.connect(self.again_wanted)
            message.set_last(last)
        message.link_chosen.connect(self.link_chosen)
        self._shown.append(message)
        self._messages.insertWidget(self._messages.count() - 1, message)

    def _range_changed(self) -> None:
        if self._follow:
            self._settle.start()

    def _keep_down(self) -> None:
        if self._follow:
            self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def _moved(self, value: int) -> None:
        self._follow = value >= self.verticalScrollBar().maximum() - _NEAR
        self._down.setVisible(not self._follow)
        self._place_button()

    def _place_button(self) -> None:
        self._down.adjustSize()
        x = (self.viewport().width() - self._down.width()) // 2
        self._down.move(x, self.viewport().height() - self._down.height() - Space.M)
