"""A table that grows row by row.

Qt lays out a table whole, whenever a cell of it changes. So a long one is several Qt tables
below each other, whose columns are as wide as those of the first; and one with more columns
than fit a page is no Qt table at all: its rows are lines that the view scrolls sideways,
with the source of their cells as it is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextLength,
    QTextTable,
)

from app.ui.look import theme
from app.ui.look.theme import Size, Space
from app.ui.markdown import formats, inline, runs
from app.ui.markdown.blocks import SEGMENT
from app.ui.markdown.formats import Mark

WIDE: Final = 12
"""Columns beyond which rows are lines."""

_CELLS: Final = 96  # of one Qt table
_ROWS: Final = 24  # the same
_NARROWEST: Final = 6  # letters of a column of a row that is a line
_WIDEST: Final = 320.0  # px of text that a column asks for
_SIDES: Final = {
    "": Qt.AlignmentFlag.AlignLeading,
    "left": Qt.AlignmentFlag.AlignLeft,
    "right": Qt.AlignmentFlag.AlignRight,
    "center": Qt.AlignmentFlag.AlignHCenter,
}


class Table:
    """Written at `cursor`, which stands at the end of its document and stays there."""

    def __init__(
        self,
        cursor: QTextCursor,
        header: Sequence[str],
        align: Sequence[str],
        base: QTextBlockFormat,
    ) -> None:
        self._cursor = cursor
        self._align = align
        self._left = base.leftMargin() + base.indent() * cursor.document().indentWidth()
        self._widths = [0.0] * len(align)
        self._rows = 0
        self._measure(header, header=True)

    @staticmethod
    def make(
        cursor: QTextCursor,
        header: Sequence[str],
        align: Sequence[str],
        base: QTextBlockFormat,
    ) -> Table:
        """`base`: the shape of text blocks where the table stands; `cursor` is in one."""
        kind = _Lined if len(align) > WIDE else _Gridded
        return kind(cursor, header, align, base)

    def add(self, cells: Sequence[str], *, provisional: bool) -> None:
        raise NotImplementedError

    def take_back(self) -> None:
        """Remove the provisional row."""
        raise NotImplementedError

    def end(self) -> None:
        """No more rows come."""

    def _measure(self, cells: Sequence[str], *, header: bool = False) -> bool:
        """Whether a column has become wider."""
        weight = QFont.Weight.DemiBold if header else QFont.Weight.Normal
        metrics = QFontMetricsF(theme.font(Size.BODY, weight))
        needed = [min(_WIDEST, metrics.horizontalAdvance(cell[:80])) for cell in cells]
        before = self._widths
        self._widths = [max(pair) for pair in zip(before, needed, strict=True)]
        return before != self._widths


class _Gridded(Table):
    def __init__(
        self,
        cursor: QTextCursor,
        header: Sequence[str],
        align: Sequence[str],
        base: QTextBlockFormat,
    ) -> None:
        super().__init__(cursor, header, align, base)
        self._look = formats.table(len(align))
        self._look.setLeftMargin(self._left)
        self._most = max(1, min(_ROWS, _CELLS // len(align)))
        self._first = self._grid = self._insert()
        self._fill(self._grid, 0, header, header=True)
        self._rows = 1

    def add(self, cells: Sequence[str], *, provisional: bool) -> None:
        if self._rows >= self._most and not provisional:
            self._go_on()
        elif self._rows:
            self._grid.appendRows(1)
        self._fill(self._grid, self._rows, cells, header=False)
        if not provisional:
            self._rows += 1
            if self._grid is self._first:
                self._measure(cells)

    def take_back(self) -> None:
        if self._grid.rows() > self._rows:
            self._grid.removeRows(self._rows, self._grid.rows() - self._rows)

    def _go_on(self) -> None:
        """Another Qt table, as wide as the first, whose columns now stay as they are."""
        if self._grid is self._first:
            wanted = [max(width, 2.0 * Space.XL) for width in self._widths]
            share = QTextLength.Type.PercentageLength
            self._look.setColumnWidthConstraints(
                [QTextLength(share, 100 * width / sum(wanted)) for width in wanted]
            )
            self._look.setWidth(QTextLength(share, 100))
            self._first.setFormat(self._look)
        self._grid = self._insert()
        self._rows = 0

    def _insert(self) -> QTextTable:
        result = self._cursor.insertTable(1, len(self._align), self._look)
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        self._cursor.setBlockFormat(formats.seam())
        return result

    def _fill(self, grid: QTextTable, row: int, cells: Sequence[str], *, header: bool) -> None:
        chars, look = formats.chars("th" if header else ""), formats.cell(header=header)
        for column, source in enumerate(cells):
            cell = grid.cellAt(row, column)
            cell.setFormat(look)
            inside = cell.firstCursorPosition()
            block = formats.paragraph()
            block.setAlignment(_SIDES[self._align[column]])
            inside.setBlockFormat(block)
            _write(inside, source, chars)


class _Lined(Table):
    """Each row is a line of letters of one width."""

    def __init__(
        self,
        cursor: QTextCursor,
        header: Sequence[str],
        align: Sequence[str],
        base: QTextBlockFormat,
    ) -> None:
        super().__init__(cursor, header, align, base)
        self._shape = formats.wide_row(self._left, ",".join(align))
        self._columns = [_NARROWEST] * len(align)
        self._line(header, header=True, provisional=False)

    def add(self, cells: Sequence[str], *, provisional: bool) -> None:
        self._line(cells, header=False, provisional=provisional)

    def take_back(self) -> None:
        """The writer removes what stands behind the last row."""

    def _line(self, cells: Sequence[str], *, header: bool, provisional: bool) -> None:
        """A column that is too narrow for its cell is wider from there on."""
        needed = [max(pair) for pair in zip(self._columns, map(_letters, cells), strict=True)]
        if not provisional:
            self._columns = needed
        self._cursor.insertBlock(self._shape, formats.code_chars())
        chars = formats.code_chars()
        if header:
            chars = formats.emphasis(chars, Mark.STRONG)
            chars.clearProperty(Mark.STRONG)
        padded = []
        for source, width, side in zip(cells, needed, self._align, strict=True):
            room = width - _letters(source)
            before = {"right": room, "center": room // 2}.get(side, 0)
            padded.append(" " * before + source + " " * (room - before))
        self._cursor.insertText(formats.EDGE.join(padded), chars)


def _letters(text: str) -> int:
    """How many letters of one width `text` is wide."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def _write(cursor: QTextCursor, source: str, chars: QTextCharFormat) -> None:
    if len(source) > SEGMENT:
        cursor.insertText(source, chars)
    else:
        runs.write(cursor, inline.parse(source, cell=True), chars)
