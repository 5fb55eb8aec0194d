"""Inline messages: what happened, what to do, and perhaps a button with a verb."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QFont, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.look import announce, theme, words
from app.ui.look.controls import holds_focus
from app.ui.look.flow import Flow
from app.ui.look.icons import IconButton, Sign
from app.ui.look.labels import broken
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space

SEEN: Final = 3
"""Messages that are seen at once."""

_ROOM_FOR_TEXT: Final = 260
"""Width in px, at the usual size of text, that buttons beside a message have to leave."""

_SCHEMES: Final = ("http", "https", "mailto")


class Notice(QFrame):
    closed = Signal()
    focus_left = Signal()  # it had it, and is about to go

    def __init__(
        self,
        message: str,
        remedy: str = "",
        *,
        level: str = "info",
        closable: bool = True,
        parent: QWidget | None = None,
    ) -> None:
        """Without `closable` it stays until one of its buttons is pressed."""
        super().__init__(parent)
        self.message, self._remedy = message, remedy = tr(message), tr(remedy)
        self.setProperty("kind", "notice")
        self.setProperty("level", level)
        message, remedy = words.quoted(message), words.quoted(remedy)
        self.setAccessibleName(f"{message} {remedy}".strip())
        text = QVBoxLayout()
        text.setSpacing(2)
        head = _label(message)
        head.setFont(theme.font(Size.CONTROL, QFont.Weight.Medium))
        if level == "error":
            head.setProperty("kind", "error")
        text.addWidget(head)
        if remedy:
            text.addWidget(_label(remedy))
        self._buttons = QWidget()
        Flow(self._buttons, Space.S)
        self._buttons.hide()
        self._inside = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._inside.setSpacing(Space.S)
        self._inside.addLayout(text, 1)
        self._inside.addWidget(self._buttons)
        row = QHBoxLayout(self)
        row.setContentsMargins(Space.M, Space.S, Space.S, Space.S)
        row.setSpacing(Space.S)
        if level == "error":
            row.addWidget(Sign("alert", "danger"), 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(self._inside, 1)
        if closable:
            close = IconButton("close", "Dismiss this message", size=14)
            close.clicked.connect(self.dismiss)
            row.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)

    def says(self, message: str, remedy: str) -> bool:
        return (self.message, self._remedy) == (tr(message), tr(remedy))

    def add_button(self, label: str) -> QPushButton:
        button = QPushButton(tr(label))
        button.setProperty("kind", "outline")
        button.setAccessibleName(tr(label))
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(self.dismiss)
        layout = self._buttons.layout()
        assert layout is not None
        layout.addWidget(button)
        button.show()  # the message may be on view already
        self._buttons.show()
        self.fit(self.width())
        return button

    def fit(self, width: int) -> int:
        """Lay it out for `width` px; returns its height in px."""
        left = width - self._buttons.sizeHint().width()
        beside = left >= _ROOM_FOR_TEXT * theme.scale()
        direction = QBoxLayout.Direction
        self._inside.setDirection(direction.LeftToRight if beside else direction.TopToBottom)
        layout = self.layout()
        assert layout is not None
        return layout.heightForWidth(width)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit(event.size().width())

    def dismiss(self) -> None:
        if holds_focus(self):
            self.focus_left.emit()
        self.hide()
        self.closed.emit()
        self.deleteLater()


class Notices(QWidget):
    """The messages above the composer, the newest at the bottom.

    What is said twice stands once. A message with a `topic` takes the place of the one that
    was there on it, and goes when `drop` says that it is no longer true. Of many, the newest
    are seen, as far as there is room; the others are told by their number, and come up as those
    are closed.
    """

    focus_left = Signal()  # the message that had it is about to go

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._room = 0
        self._all: list[tuple[Notice, str]] = []  # with their topics, oldest first
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(Space.S)
        self._older = QLabel()
        self._older.setProperty("kind", "caption")
        self._older.setFont(theme.font(Size.SMALL))
        close_all = QPushButton(tr("Close all"))
        close_all.setProperty("kind", "quiet")
        close_all.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        close_all.clicked.connect(self.close_all)
        self._more = QWidget()
        row = QHBoxLayout(self._more)
        row.setContentsMargins(Space.M, 0, 0, 0)
        row.addWidget(self._older)
        row.addStretch(1)
        row.addWidget(close_all)
        self._column.addWidget(self._more)
        self._arrange()

    @property
    def all(self) -> list[Notice]:
        return [notice for notice, _ in self._all]

    def add(
        self, message: str, remedy: str = "", level: str = "info", *, topic: str = ""
    ) -> Notice:
        for old, its_topic in list(self._all):
            if (topic and its_topic == topic) or old.says(message, remedy):
                old.dismiss()
        notice = Notice(message, remedy, level=level)
        notice.closed.connect(lambda: self._drop(notice))
        notice.focus_left.connect(self.focus_left)
        self._all.append((notice, topic))
        self._column.addWidget(notice)
        self._arrange()
        announce.say(self, notice.accessibleName(), urgent=level == "error")
        return notice

    def drop(self, topic: str) -> None:
        """What was said on it is no longer true."""
        for notice, its_topic in list(self._all):
            if its_topic == topic:
                notice.dismiss()

    def close_all(self) -> None:
        for notice in self.all:
            notice.dismiss()

    def offer_link(self, address: str) -> None:
        """Show where a link leads; only then can it be opened, outside of the app."""
        url = QUrl(address, QUrl.ParsingMode.StrictMode)
        if url.scheme().lower() in _SCHEMES:
            notice = self.add(
                tr("Open {address} in the browser?").format(address=address), topic="link"
            )
            button = notice.add_button("Open the link")
            button.clicked.connect(lambda: QDesktopServices.openUrl(url))
        else:
            told = tr("Only web and mail links are opened, not {address}")
            self.add(told.format(address=address), topic="link")

    def set_room(self, height: int) -> None:
        """Px that all of them take at most, apart from the newest, which is seen whole."""
        if height != self._room:
            self._room = height
            self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # a message has got a button, say
            self._arrange()
        return super().event(event)

    def _seen(self) -> int:
        """How many of the newest there is room for."""
        taken = 0
        for count, notice in enumerate(reversed(self.all)):
            taken += notice.fit(self.width()) + Space.S
            if count and (count == SEEN or (self._room and taken > self._room)):
                return count
        return len(self._all)

    def _drop(self, notice: Notice) -> None:
        self._all = [(n, topic) for n, topic in self._all if n is not notice]
        self._column.removeWidget(notice)
        self._arrange()

    def _arrange(self) -> None:
        hidden = len(self._all) - self._seen()
        for place, notice in enumerate(self.all):
            notice.setVisible(place >= hidden)
        older = tr("1 older message") if hidden == 1 else tr("{n} older messages").format(n=hidden)
        self._older.setText(older)
        self._more.setVisible(hidden > 0)
        self.setVisible(bool(self._all))


def _label(text: str) -> QLabel:
    result = QLabel(broken(text))
    result.setTextFormat(Qt.TextFormat.PlainText)
    result.setWordWrap(True)
    result.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse
        | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    return result
