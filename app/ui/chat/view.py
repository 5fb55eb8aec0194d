"""The messages of one conversation, newest at the bottom, or the welcome page."""

from __future__ import annotations

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
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._follow = True
        # Qt is still in the middle of laying out when it tells a new range.
        self._settle = QTimer(self, interval=0, singleShot=True)
        self._settle.timeout.connect(self._keep_down)
        self._answers: list[AnswerView] = []

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
        return self._answers

    def add_question(self, text: str) -> None:
        if self._welcome.isVisibleTo(self):
            self._welcome.hide()
            self._messages.addStretch(1)
        question = Question(text)
        question.link_chosen.connect(self.link_chosen)
        self._add(question)
        self.go_down()

    def add_answer(self) -> AnswerView:
        answer = AnswerView()
        answer.link_chosen.connect(self.link_chosen)
        answer.again_wanted.connect(self.again_wanted)
        if self._answers:
            self._answers[-1].set_last(False)
        self._answers.append(answer)
        self._add(answer)
        return answer

    def drop_answer(self) -> None:
        """Remove the last answer, which is about to be made again."""
        answer = self._answers.pop()
        self._messages.removeWidget(answer)
        answer.hide()
        answer.deleteLater()

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

    def _add(self, widget: QWidget) -> None:
        self._messages.insertWidget(self._messages.count() - 1, widget)

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
