"""Text of one message: as high as its document, selectable as a whole, read-only."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from PySide6.QtCore import QByteArray, QEvent, QMimeData, QPointF, QRectF, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextCursor,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QFrame, QSizePolicy, QTextBrowser, QWidget

from app.ui.look import theme
from app.ui.look.controls import is_paging
from app.ui.look.icons import IconButton
from app.ui.look.theme import MONO, RADIUS, Size, Space
from app.ui.markdown import markers, table
from app.ui.markdown.copying import markdown, plain_text
from app.ui.markdown.document import Decoration, Kind
from app.ui.markdown.formats import CELL_PADDING, CODE_HEADER, Mark
from app.ui.markdown.formula import FormulaObject
from app.ui.markdown.selection import Selection
from app.ui.markdown.sideways import PIECES, Sideways, reach

_BAR: Final = 3.0  # px of the bar beside a quote

_LONG: Final = 400
"""Height in px from which on code has a copy button below it too."""

_CARET: Final = frozenset(
    (
        Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Home,
        Qt.Key.Key_End,
    )
)  # fmt: skip


class TextView(QTextBrowser):
    """`source` gives the text as it was written: what is copied when all is selected."""

    link_chosen = Signal(str)
    wrap_chosen = Signal(bool)  # of long lines of code
    caret_moved = Signal()  # by a key, or sought by one
    dragged = Signal(QPointF)  # the mouse, with its button held: where on the screen
    dropped = Signal()  # its button went up

    def __init__(
        self, name: str, source: Callable[[], str] = str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._source = source
        self._decorations: list[Decoration] = []
        self._areas: list[QRectF] = []  # of those that did not change since
        self._buttons: list[_Buttons] = []  # of each piece of code
        self._placed = 0  # pieces of code whose buttons stand where they belong
        self._stands: tuple[Decoration, QRectF, bool] | None = None  # the last that was placed
        self._sideways = Sideways(self)
        self._kept: Selection | None = None  # of a text that is being written again
        # Of the bars alone: each paragraph goes as its own words do. The other way round Qt
        # takes a bar at 0 for a text that is scrolled to its end.
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.horizontalScrollBar().valueChanged.connect(self._show_cursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        formulas = FormulaObject(self.document())
        formulas.refitted.connect(self._measure_anew)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.anchorClicked.connect(lambda url: self.link_chosen.emit(url.toString()))

    def decorate(self, decorations: list[Decoration]) -> None:
        """What is painted behind the text; each piece of code has a copy button.

        Text is only ever added at the end: where a decoration is the same object as
        before, its place is the same too.
        """
        same = 0
        for old, new in zip(self._decorations[: len(self._areas)], decorations, strict=False):
            if old is not new:
                break
            same += 1
        del self._areas[same:]
        if same < len(self._decorations):
            self._stands = None
        self._decorations = decorations
        self._sideways.show(decorations)
        self._placed = min(self._placed, sum(d.kind in PIECES for d in decorations[:same]))
        for surplus in self._buttons[len(self._codes()) :]:
            for button in surplus:
                button.hide()
        self._fit()
        self.viewport().update()

    def select_to(self, mouse: QPointF) -> None:
        """What is selected goes on to here on the screen, as if the mouse had come there."""
        here, button = self.viewport().mapFromGlobal(mouse), Qt.MouseButton
        move = QMouseEvent(
            QEvent.Type.MouseMove, here, mouse, button.NoButton, button.LeftButton,
            Qt.KeyboardModifier.NoModifier,
        )  # fmt: skip
        QApplication.sendEvent(self.viewport(), move)

    def keep_selection(self, start: int = 0) -> None:
        """The text is about to be written again from position `start` on."""
        cursor = self.textCursor()
        looked_at = cursor.hasSelection() or self.hasFocus()
        if self._kept is None and looked_at and cursor.selectionEnd() >= start:
            self._kept = Selection(self, start)

    def restore_selection(self, *, whole: bool) -> None:
        """The text, or a part of it, is written; what was selected may be there again."""
        if self._kept is None:
            return
        if whole or self.document().characterCount() > self._kept.end:
            with self._sideways.shifted(0):  # Qt would scroll to it
                self._kept.restore()
            self._kept = None

    # --- Qt ---------------------------------------------------------------------

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Nothing is ever fetched or opened for a text."""
        return QByteArray()

    def createMimeDataFromSelection(self) -> QMimeData:
        cursor, data = self.textCursor(), QMimeData()
        start, end = cursor.selectionStart(), cursor.selectionEnd()
        everything = start == 0 and end >= self.document().characterCount() - 1
        text = self._source() if everything else ""
        data.setText(text or markdown(self.document(), start, end))
        return data

    def wheelEvent(self, event: QWheelEvent) -> None:
        across, down = event.angleDelta().x(), event.angleDelta().y()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            across, down = across or down, 0
        piece = self._sideways.at(event.position().y())
        if piece is not None and abs(across) > abs(down):  # a finger is never quite straight
            piece.bar.setValue(piece.bar.value() - across // 2)
        else:
            event.ignore()  # the chat scrolls, not the message

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            for piece in self._decorations:
                if piece.kind is Kind.GRID:
                    table.fit(self.document(), piece.start, piece.end)
            self._measure_anew()
        else:
            self._place_buttons()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        visible = QRectF(event.rect())
        for i, decoration in enumerate(self._decorations):
            area = self._area(i)
            if area.intersects(visible):
                self._paint(painter, decoration, area)
        markers.paint(painter, self.document(), visible)
        painter.end()
        for stripe, shift in self._sideways.stripes(event.rect()):
            with self._sideways.shifted(shift):
                super().paintEvent(QPaintEvent(stripe))

    def viewportEvent(self, event: QEvent) -> bool:
        if not isinstance(event, QMouseEvent):
            return super().viewportEvent(event)
        before = self.textCursor().position()
        piece = self._sideways.at(event.position().y())
        with self._sideways.shifted(piece.bar.value() if piece else 0):
            result = super().viewportEvent(event)
        moved = event.type() == QEvent.Type.MouseMove and self.textCursor().position() != before
        if moved:  # it selects, maybe beyond the edge
            self.reveal(self.textCursor())
        if event.type() == QEvent.Type.MouseButtonRelease:
            self.dropped.emit()
        elif event.buttons() & Qt.MouseButton.LeftButton:
            self.dragged.emit(event.globalPosition())
        return result

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if is_paging(event):  # the chat scrolls, not the message
            event.ignore()
            return
        super().keyPressEvent(event)
        if event.key() in _CARET:  # it is sought also where it cannot go on
            self.reveal(self.textCursor())
            self.caret_moved.emit()

    def event(self, event: QEvent) -> bool:
        # Escape belongs to the window (Stop), not to a selection.
        if event.type() == QEvent.Type.ShortcutOverride:
            event.ignore()
            return False
        return super().event(event)

    # --- own --------------------------------------------------------------------

    def _codes(self) -> list[int]:
        return [i for i, d in enumerate(self._decorations) if d.kind is Kind.CODE]

    def _fit(self) -> None:
        document = self.document()
        size = document.size()
        height = math.ceil(size.height() + self._below(document.lastBlock()))
        if height != self.height():
            self.setFixedHeight(height)
        self._place_buttons()

    def _area(self, index: int) -> QRectF:
        """The place of a decoration, without the margins around it."""
        if index < len(self._areas):
            return self._areas[index]
        decoration = self._decorations[index]
        document, layout = self.document(), self.document().documentLayout()
        last = document.findBlock(decoration.end)
        top = layout.blockBoundingRect(document.findBlock(decoration.start)).top()
        bottom = layout.blockBoundingRect(last).bottom() + self._below(last)
        top -= {Kind.CODE: CODE_HEADER, Kind.GRID: CELL_PADDING}.get(decoration.kind, 0)
        corners = QPointF(decoration.left, top), QPointF(self.viewport().width(), bottom)
        result = QRectF(*corners)
        if index == len(self._areas):
            self._areas.append(result)
        return result

    def _below(self, block: QTextBlock) -> int:
        """How far the ground of code, or the room of a bar, reaches below its last line."""
        shape = block.blockFormat()
        room = shape.hasProperty(Mark.CODE) or shape.hasProperty(Mark.WIDE_ROW)
        if shape.hasProperty(Mark.SEAM):
            room = table.spread(block.previous()) > 0
        elif shape.hasProperty(Mark.ALONE):
            room = reach(block) > self.document().textWidth()
        return Space.M if room else 0

    def _paint(self, painter: QPainter, decoration: Decoration, area: QRectF) -> None:
        colours = theme.current()
        painter.setPen(Qt.PenStyle.NoPen)
        if decoration.kind is Kind.CODE:
            painter.setBrush(QColor(colours.code))
            painter.setPen(QColor(colours.line))
            ground = area.adjusted(0.5, 0.5, -0.5, -0.5)
            painter.drawRoundedRect(ground, RADIUS, RADIUS)
            painter.setPen(QColor(colours.muted))
            painter.setFont(theme.font(Size.SMALL, family=MONO))
            strip = QRectF(area.left() + Space.L, area.top(), area.width(), CODE_HEADER)
            painter.drawText(strip, Qt.AlignmentFlag.AlignVCenter, decoration.language or "text")
        elif decoration.kind is Kind.QUOTE:
            painter.setBrush(QColor(colours.line_strong))
            first = self.document().findBlock(decoration.start)
            turned = first.textDirection() == Qt.LayoutDirection.RightToLeft
            left = area.right() - decoration.left - _BAR if turned else decoration.left
            bar = QRectF(left, area.top(), _BAR, area.height())
            painter.drawRoundedRect(bar, _BAR / 2, _BAR / 2)
        elif decoration.kind is Kind.RULE:
            line = QRectF(decoration.left, round(area.top()), area.width(), 1)
            painter.fillRect(line, QColor(colours.line_strong))

    def _measure_anew(self) -> None:
        self._areas.clear()
        self._placed, self._stands = 0, None
        self._fit()
        self.viewport().update()

    def reveal(self, cursor: QTextCursor) -> None:
        """What `cursor` is in is scrolled sideways so far that it is seen."""
        place = self.cursorRect(cursor)
        if (piece := self._sideways.at(place.center().y())) is not None:
            piece.reveal(place.left(), place.right())

    def _show_cursor(self, value: int) -> None:
        """Qt scrolls the text to where it is selected: what is there is scrolled, and no more."""
        if value:
            self.horizontalScrollBar().setValue(0)
            self.reveal(self.textCursor())
            self.viewport().update()

    def _place_buttons(self) -> None:
        codes = self._codes()
        while len(self._buttons) < len(codes):
            self._buttons.append(self._make_buttons(len(self._buttons)))
        wraps = theme.wraps_code()
        pieces = [i for i, d in enumerate(self._decorations) if d.kind in PIECES]
        last = max(0, len(pieces) - 1)  # may still grow
        for n in range(self._placed, len(pieces)):
            piece, area = self._decorations[pieces[n]], self._area(pieces[n])
            if (piece, area, wraps) == self._stands:
                continue
            if self._sideways.place(n, area):
                self._stands = piece, QRectF(area), wraps
            else:
                last = min(last, n)
            if piece.kind is not Kind.CODE:
                continue
            buttons = self._buttons[codes.index(pieces[n])]
            right, top = round(area.right()) - 34, round(area.top()) + 4
            buttons.copy.move(right, top)
            buttons.wrap.move(right - 30, top)
            buttons.below.move(right, round(area.bottom()) - 32)
            buttons.wrap.set_label("Scroll long lines" if wraps else "Wrap long lines")
            buttons.copy.show()
            buttons.wrap.show()
            buttons.below.setVisible(area.height() > _LONG)
        self._placed = last

    def _make_buttons(self, index: int) -> _Buttons:
        copy, below = (self._make_button("copy", "Copy this code") for _ in range(2))
        for button in (copy, below):
            button.clicked.connect(partial(self._copy_code, index, button))
        wrap = self._make_button("wrap", "Wrap long lines")
        wrap.clicked.connect(lambda: self.wrap_chosen.emit(not theme.wraps_code()))
        return _Buttons(wrap, copy, below)

    def _make_button(self, icon: str, label: str) -> IconButton:
        result = IconButton(icon, label, self.viewport(), size=16)
        result.resize(28, 28)
        return result

    def _copy_code(self, index: int, button: IconButton) -> None:
        code = self._decorations[self._codes()[index]]
        QGuiApplication.clipboard().setText(plain_text(self.document(), code.start, code.end))
        button.confirm("The code is copied.")


class _Buttons(NamedTuple):
    """Of one piece of code; `below` is for a long one."""

    wrap: IconButton
    copy: IconButton
    below: IconButton
