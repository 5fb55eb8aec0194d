"""What stands beside the conversation: chats at its left, meters or a sheet at its right.

Where there is room they are docked, and the conversation makes way. Where there is none,
they float over it until something is chosen, Escape is pressed, or anything else is
clicked. A sheet never covers the composer: docked it stands beside it, floating above it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from PySide6.QtCore import QEvent, QObject, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QWidget

from app.ui.look import theme
from app.ui.look.controls import holds_focus

ROOM_FOR_METERS: Final = 940
ROOM_FOR_SHEET: Final = 860
ROOM_BESIDE_CHATS: Final = 780
"""Widths in px: of the window, and of what is right of the chats with what stands there."""

_PEEK: Final = 56
"""Px of the conversation that are seen beside what floats over it, and can be clicked."""


class Side(StrEnum):
    NONE = ""
    CHATS = "chats"
    METERS = "meters"
    SHEET = "sheet"


class Scrim(QWidget):
    """Dims what lies below something that floats."""

    pressed = Signal()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pressed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        dark = theme.current().name == "dark"
        QPainter(self).fillRect(self.rect(), QColor(0, 0, 0, 120 if dark else 60))


class Sides(QObject):
    """Lays out `chats`, `meters` and sheets in `body`, which holds the conversation.

    Of what floats, one thing is seen at a time, and of sheets one at all.
    """

    changed = Signal()  # what is seen, or how
    focus_left = Signal()  # the sheet that has it is about to go

    def __init__(
        self, page: QWidget, body: QHBoxLayout, above: QWidget, chats: QWidget, meters: QWidget
    ) -> None:
        """A floating sheet ends where `above` begins: that is the composer's place."""
        super().__init__(page)
        self._page, self._body, self._above = page, body, above
        self._chats, self._meters = chats, meters
        self._usual = {w: max(w.minimumWidth(), w.sizeHint().width()) for w in (chats, meters)}
        self._scrim = Scrim(page)
        self._scrim.hide()
        self._scrim.pressed.connect(self.close_floating)
        self._sheet: QFrame | None = None
        self._leaving: QFrame | None = None  # the sheet that goes once the mouse is released
        self._floating = Side.NONE
        self._wanted = {Side.CHATS: True, Side.METERS: True}
        self._top = 0
        # Later: from within the layout that moves it, a sheet that was docked is not to be touched.
        self._moved = QTimer(self, singleShot=True, interval=0)
        self._moved.timeout.connect(self._fit_sheet)
        above.installEventFilter(self)

    # --- what is wanted ---------------------------------------------------------

    def want(self, side: Side, wanted: bool) -> None:
        """Whether `side` is to be seen where there is room for it."""
        self._wanted[side] = wanted
        self.place()

    def toggle(self, side: Side) -> bool | None:
        """Show or hide; gives back what is wanted now where that is a lasting choice."""
        if self.fits(side):
            return not self._wanted[side]
        self._floating = Side.NONE if self._floating is side else side
        if self._floating is not Side.NONE:
            self._drop_sheet()
            if self.fits(side):  # the sheet had its place
                self._floating = Side.NONE
                self.place()
                return True
        self.place()
        return None

    def seen(self, side: Side) -> bool:
        if side is Side.SHEET:
            return self._sheet is not None
        return self._floating is side or (self.fits(side) and self._wanted[side])

    # --- sheets -----------------------------------------------------------------

    @property
    def sheet(self) -> QFrame | None:
        return self._sheet

    def open_sheet(self, sheet: QFrame) -> None:
        """Show `sheet` in place of any other, and of the meters."""
        self._drop_sheet()
        self._floating = Side.NONE
        self._sheet = sheet
        self._usual.setdefault(sheet, max(sheet.minimumWidth(), sheet.sizeHint().width()))
        # Looked at only while there is something to close: it sees every event.
        QApplication.instance().installEventFilter(self)  # type: ignore[union-attr]
        self.place()
        sheet.setFocus(Qt.FocusReason.OtherFocusReason)

    def close_sheet(self) -> None:
        if self._sheet is not None:
            self._drop_sheet()
            self.place()

    @property
    def floats(self) -> bool:
        """Whether anything lies over the conversation."""
        over = self._sheet is not None and not self.fits(Side.SHEET)
        return over or self._floating is not Side.NONE

    def close_floating(self) -> bool:
        """Close whatever lies over the conversation; whether there was anything."""
        if self._sheet is None and self._floating is Side.NONE:
            return False
        self._drop_sheet()
        self._floating = Side.NONE
        self.place()
        return True

    def close_chosen(self) -> None:
        """Something was chosen in what floats, which has done its work."""
        if self._floating is not Side.NONE:
            self.close_floating()

    # --- places -----------------------------------------------------------------

    def fits(self, side: Side) -> bool:
        """Whether there is room to dock it."""
        width = self._page.width()
        match side:
            case Side.METERS:
                return width >= ROOM_FOR_METERS and self._sheet is None
            case Side.SHEET:
                return width >= ROOM_FOR_SHEET
            case _:
                return width - self._right() >= ROOM_BESIDE_CHATS

    def place(self, top: int | None = None) -> None:
        """Put everything where it belongs; `top` is the height of the header."""
        self._top = self._top if top is None else top
        if self._floating is not Side.NONE and self.fits(self._floating):
            self._floating = Side.NONE  # the window has grown: it is docked if it is wanted
        sheet = self._sheet
        self._put(self._chats, Side.CHATS, left=True)
        self._put(self._meters, Side.METERS)
        if sheet is not None:
            self._put(sheet, Side.SHEET)
        over = self._floating is not Side.NONE
        self._scrim.setVisible(over)
        if over:
            self._scrim.setGeometry(self._rest())
            self._scrim.raise_()
            (self._chats if self._floating is Side.CHATS else self._meters).raise_()
        elif sheet is not None and not self.fits(Side.SHEET):
            sheet.raise_()
        self.changed.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A click outside of the sheet closes it, and does what it would have done.

        It closes after the click: before, what was pressed would move from under the mouse.
        """
        if watched is self._above and event.type() in (QEvent.Type.Move, QEvent.Type.Resize):
            self._moved.start()
        elif event.type() == QEvent.Type.MouseButtonRelease and self._leaving is not None:
            left, self._leaving = self._leaving, None
            QTimer.singleShot(0, self, lambda: self._leave(left))
        elif (
            event.type() == QEvent.Type.MouseButtonPress
            and self._sheet is not None
            and isinstance(event, QMouseEvent)
            and isinstance(watched, QWidget)
            and watched.window() is self._page.window()
            and watched is not self._page.window()
            and not self._is_on(self._sheet, watched, event)
            and not watched.property("opens_sheet")
        ):
            self._leaving = self._sheet
        return False

    @staticmethod
    def _is_on(sheet: QFrame, watched: QWidget, event: QMouseEvent) -> bool:
        """By its place as well: what no widget of a sheet takes is told to those below it."""
        if watched is sheet or sheet.isAncestorOf(watched):
            return True
        return sheet.rect().contains(sheet.mapFromGlobal(event.globalPosition().toPoint()))

    def _fit_sheet(self) -> None:
        """A message came or went, or more is written."""
        if self._sheet is not None and not self.fits(Side.SHEET):
            self._put(self._sheet, Side.SHEET)

    def _leave(self, sheet: QFrame) -> None:
        if self._sheet is sheet:  # else the click has opened another one
            self.close_sheet()

    def _right(self) -> int:
        """Width of what is docked at the right."""
        if self._sheet is not None:
            return self._usual[self._sheet] if self.fits(Side.SHEET) else 0
        return (
            self._usual[self._meters] if self.fits(Side.METERS) and self._wanted[Side.METERS] else 0
        )

    def _put(self, widget: QWidget, side: Side, left: bool = False) -> None:
        docked = self.fits(side) and (side is Side.SHEET or self._wanted[side])
        index = self._body.indexOf(widget)
        if docked:
            if index < 0:
                self._body.insertWidget(0 if left else self._body.count(), widget)
            widget.setFixedWidth(self._usual[widget])
            widget.show()
            return
        if index >= 0:
            self._body.removeWidget(widget)
        if widget.parentWidget() is not self._page:
            widget.setParent(self._page)
        if side is not Side.SHEET and self._floating is not side:
            widget.hide()
            return
        rest = self._rest()
        peek = 0 if side is Side.SHEET else _PEEK
        widget.setFixedWidth(min(self._usual[widget], rest.width() - peek))
        height = rest.height()
        if side is Side.SHEET:
            height = self._above.mapTo(self._page, self._above.rect().topLeft()).y() - rest.top()
        x = rest.left() if left else rest.right() + 1 - widget.width()
        widget.setGeometry(x, rest.top(), widget.width(), height)
        widget.show()

    def _rest(self) -> QRect:
        """The page below the header."""
        return self._page.rect().adjusted(0, self._top, 0, 0)

    def _drop_sheet(self) -> None:
        if self._sheet is None:
            return
        QApplication.instance().removeEventFilter(self)  # type: ignore[union-attr]
        sheet, self._sheet = self._sheet, None
        if sheet.hasFocus() or holds_focus(sheet):
            self.focus_left.emit()
        self._body.removeWidget(sheet)
        sheet.hide()
        sheet.setParent(self._page)
