"""What of a text is wider than the page, piece by piece: each scrolls sideways for itself.

A piece is code whose lines are not wrapped, a table or a formula that is wider than the page. Qt
scrolls a text whole. So the view's own bar stays where it is, and is set for a piece only while
Qt paints it or is told of the mouse in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from PySide6.QtCore import QRect, QRectF, QSignalBlocker, Qt
from PySide6.QtGui import QFontMetricsF, QTextBlock, QTextDocument, QWheelEvent
from PySide6.QtWidgets import QScrollBar, QTextBrowser

from app.ui.look.language import tr
from app.ui.look.theme import Space
from app.ui.markdown import formats
from app.ui.markdown.document import Decoration, Kind
from app.ui.markdown.table import begins_right, spread

PIECES: Final = (Kind.CODE, Kind.WIDE, Kind.GRID, Kind.FORMULA)

BAR: Final = 10
"""Height in px of a piece's bar, which stands below its last line."""


class Sideways:
    """The pieces of `view`, in their order."""

    def __init__(self, view: QTextBrowser) -> None:
        self._view = view
        self._pieces: list[_Piece] = []

    def show(self, decorations: list[Decoration]) -> None:
        """These are there now; text is only ever added at the end."""
        wide = [d for d in decorations if d.kind in PIECES]
        for piece in self._pieces[len(wide) :]:
            piece.drop()
        del self._pieces[len(wide) :]
        while len(self._pieces) < len(wide):
            self._pieces.append(_Piece(self._view))
        for piece, decoration in zip(self._pieces, wide, strict=True):
            piece.show(decoration)

    def place(self, at: int, area: QRectF) -> bool:
        """Piece number `at` has this area now; whether Qt has laid out all of it."""
        return self._pieces[at].place(area)

    def at(self, y: float) -> _Piece | None:
        """The piece that is wider than the page, at this height."""
        return next((p for p in self._pieces if p.wide and p.top <= y < p.bottom), None)

    def stripes(self, seen: QRect) -> Iterator[tuple[QRect, int]]:
        """`seen` from top to bottom, with how far each part is scrolled."""
        y = seen.top()
        for piece in self._pieces:
            if not piece.wide or piece.bottom <= y or piece.top > seen.bottom():
                continue
            if piece.top > y:
                yield QRect(seen.left(), y, seen.width(), piece.top - y), 0
                y = piece.top
            end = min(piece.bottom, seen.bottom() + 1)
            inside = QRect(piece.left, y, piece.right - piece.left, end - y)
            part = inside.intersected(seen)
            if not part.isEmpty():  # Qt would paint all for nothing
                yield part, piece.bar.value()
            y = end
        if y <= seen.bottom():
            yield QRect(seen.left(), y, seen.width(), seen.bottom() + 1 - y), 0

    @contextmanager
    def shifted(self, by: int) -> Iterator[None]:
        """Qt takes the whole text as scrolled by so many px."""
        bar = self._view.horizontalScrollBar()
        with QSignalBlocker(bar):
            bar.setValue(by)
            try:
                yield
            finally:
                bar.setValue(0)


class _Bar(QScrollBar):
    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # as over the text beside it: the view scrolls it, or the chat


class _Piece:
    def __init__(self, view: QTextBrowser) -> None:
        self._view = view
        self._decoration: Decoration | None = None
        self._sign = 0.0  # the width of a letter
        self._measured, self._widest = -1, 0.0  # up to which block, and what that came to
        self.left = self.right = self.top = self.bottom = 0
        self._bar: _Bar | None = None  # most pieces never need one

    @property
    def bar(self) -> QScrollBar:
        if self._bar is None:
            self._bar = bar = _Bar(Qt.Orientation.Horizontal, self._view.viewport())
            bar.setProperty("kind", "text")
            bar.style().polish(bar)  # a rule of the style sheet asks for the property
            bar.setAccessibleName(tr("Scroll sideways"))
            bar.setCursor(Qt.CursorShape.ArrowCursor)
            bar.setRange(0, 0)
            bar.setSingleStep(24)
            bar.valueChanged.connect(self._moved)
            bar.hide()
        return self._bar

    @property
    def wide(self) -> bool:
        return self._bar is not None and self._bar.maximum() > 0

    def show(self, piece: Decoration) -> None:
        if self._decoration is None or self._decoration.start != piece.start:
            self._measured, self._widest = -1, 0.0
        self._decoration = piece

    def place(self, area: QRectF) -> bool:
        assert self._decoration is not None
        self.left, self.right = round(area.left()) + 1, round(area.right()) - 1
        above = (
            Space.XS if self._decoration.kind is Kind.WIDE else 0
        )  # lines between cells reach out
        self.top, self.bottom = round(area.top()) - above, round(area.bottom())
        room = area.right()
        block = self._view.document().findBlock(self._decoration.start)
        measured = True
        if self._decoration.kind is Kind.GRID:
            self._widest = area.left() + spread(block)
        elif self._decoration.kind is Kind.FORMULA:  # another one when it is set
            self._widest = reach(block)
        else:
            measured = self._measure(self._view.document(), self._decoration)
            room -= Space.L
        over = max(0, round(self._widest - room))
        if not over and self._bar is None:
            return measured
        grid = self._decoration.kind is Kind.GRID
        stays = grid and self.bar.value() == self.bar.maximum() and begins_right(block)
        self.bar.setRange(0, over)
        if stays:
            self.bar.setValue(over)
        self.bar.setPageStep(max(1, round(room)))
        inner = self.right - self.left - 2 * Space.S
        self.bar.setGeometry(self.left + Space.S, self.bottom - BAR - 1, inner, BAR)
        self.bar.setVisible(self.wide)
        return measured

    def reveal(self, left: int, right: int) -> None:
        """Scroll so far that these px of its lines are seen, the first of them for sure."""
        self.bar.setValue(max(self.bar.value(), right - self.right + Space.L))
        self.bar.setValue(min(self.bar.value(), left - self.left - Space.L))

    def drop(self) -> None:
        if self._bar is not None:
            self._bar.hide()
            self._bar.deleteLater()

    def _moved(self) -> None:
        self._view.viewport().update(0, self.top, self._view.width(), self.bottom - self.top)

    def _measure(self, document: QTextDocument, piece: Decoration) -> bool:
        """How far its lines reach. The last one may still grow: it is measured again."""
        block = document.findBlock(piece.start)
        sign = QFontMetricsF(formats.code_chars().font()).horizontalAdvance("0")
        if sign != self._sign or not block.blockFormat().nonBreakableLines():
            self._sign, self._measured, self._widest = sign, -1, 0.0
        if not block.blockFormat().nonBreakableLines():
            return True
        if self._measured > block.blockNumber():
            block = document.findBlockByNumber(self._measured)
        while block.isValid() and block.position() <= piece.end:
            # What may be the widest is asked of Qt: not all letters are of one width.
            tabs = block.text().count("\t")
            if (block.length() * 2 + tabs * formats.TAB) * sign > self._widest:
                document.documentLayout().blockBoundingRect(block)  # lays it out, if it can be
                if block.layout().lineCount() == 0:
                    return False
                self._widest = max(self._widest, reach(block))
            self._measured = block.blockNumber()
            block = block.next()
        return True


def reach(block: QTextBlock) -> float:
    """How far the lines of a block reach in px, as far as it is laid out."""
    layout = block.layout()
    lines = (layout.lineAt(i) for i in range(layout.lineCount()))
    return max((line.naturalTextRect().right() for line in lines), default=0.0)
