"""A table that grows row by row.

Qt lays out a table whole, whenever a cell of it changes. So a long one is several Qt tables
below each other, whose columns are as wide as those of the first; and one with more columns
than fit a page is no Qt table at all: its rows are lines that the view scrolls sideways,
with the source of their cells as it is.

Qt breaks words to fit a table into the page, letter by letter in the end. So each column tells
what its words need, and where the page has less than all of them its columns are just so wide:
then the table is wider than the page, and the view scrolls it sideways too.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Container, Iterator, Sequence
from itertools import pairwise
from typing import Final

from PySide6.QtCore import Qt, QTextBoundaryFinder
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextLength,
    QTextTable,
    QTextTableFormat,
)

from app.ui.look import theme
from app.ui.look.theme import Size, Space
from app.ui.markdown import formats, inline, runs
from app.ui.markdown.blocks import SEGMENT
from app.ui.markdown.formats import Mark
from app.ui.markdown.formula import SIGN

WIDE: Final = 12
"""Columns beyond which rows are lines."""

_CELLS: Final = 96  # of one Qt table
_ROWS: Final = 24  # the same
_NARROWEST: Final = 6  # letters of a column of a row that is a line
_WIDEST: Final = 320.0  # px of text that a column asks for
_UNSPACED: Final = re.compile(f"[{inline.UNSPACED}]")
"""Scripts without spaces are broken between any two letters."""

_HYPHEN: Final = re.compile(r"(?<=[^\W\d]-)(?=[^\W\d])")
"""Where a word is broken all the same; a date is not."""

_STRONG: Final = {"R": 1, "AL": 1, "L": -1}
"""Classes of letters that tell a direction."""

_READ: Final = 400  # signs of a cell whose words are measured
_LONGEST: Final = 160.0  # px of a word that a column is made wide for
_LEAST: Final = 88.0  # px of several words that a column has room for
_FORMULA: Final = 48.0  # px of a formula: it is set later
_SIDES: Final = {
    "": Qt.AlignmentFlag.AlignLeading,
    "left": Qt.AlignmentFlag.AlignLeft,
    "right": Qt.AlignmentFlag.AlignRight,
    "center": Qt.AlignmentFlag.AlignHCenter,
}


def fit(document: QTextDocument, start: int, end: int) -> None:
    """The page has another width: the table between two positions is within it, or wider where
    its words need that."""
    block = document.findBlock(start)
    while block.isValid() and block.position() <= end:
        table = QTextCursor(block).currentTable()
        if table:
            _fit(table, table.format().toTableFormat(), document.textWidth())
            block = document.findBlock(table.lastPosition() + 1)
        else:
            block = block.next()


def spread(block: QTextBlock) -> float:
    """The width in px of the table that `block` is of, where its columns have what they need,
    and 0 elsewhere."""
    table = QTextCursor(block).currentTable()
    if not table:
        return 0.0
    widths = table.format().toTableFormat().columnWidthConstraints()
    fixed = QTextLength.Type.FixedLength
    return sum(width.rawValue() for width in widths if width.type() is fixed)


def begins_right(block: QTextBlock) -> bool:
    """Whether the first column of the table that `block` is of is at its right."""
    table = QTextCursor(block).currentTable()
    return bool(table and table.format().property(Mark.TURNED))


def _fit(table: QTextTable, look: QTextTableFormat, page: float) -> None:
    """Give `table` the shape `look`, with columns for a page so many px wide, -1 of none.

    The page is told, because PySide takes a document for gone with a table that was asked for it.
    """
    needs, shares = _numbers(look.property(Mark.NEEDS)), _numbers(look.property(Mark.SHARES))
    kind = QTextLength.Type
    width = QTextLength()
    if 0 < page < look.leftMargin() + look.rightMargin() + sum(needs):
        columns = [QTextLength(kind.FixedLength, need) for need in needs]
    elif shares:
        width = QTextLength(kind.PercentageLength, 100)
        columns = [QTextLength(kind.PercentageLength, 100 * s / sum(shares)) for s in shares]
    else:
        columns = [QTextLength(kind.VariableLength, 0)] * len(needs)
    look.setColumnWidthConstraints(columns)
    look.setWidth(width)
    if table.format() != look:  # else Qt would lay it out for nothing
        table.setFormat(look)


def _numbers(told: object) -> list[float]:
    return [float(number) for number in str(told).split(",")] if told else []


class Table:
    """Written at `cursor`, which stands at the end of its document and stays there."""

    def __init__(
        self,
        cursor: QTextCursor,
        header: Sequence[str],
        align: Sequence[str],
        base: QTextBlockFormat,
        names: Container[str] | None,
    ) -> None:
        self._cursor, self._names = cursor, names
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
        names: Container[str] | None = None,
    ) -> Table:
        """`base`: the shape of text blocks where the table stands; `cursor` is in one. `names` as
        in `inline.parse`."""
        kind = _Lined if len(align) > WIDE else _Gridded
        return kind(cursor, header, align, base, names)

    @property
    def start(self) -> int:
        """The position of its first cell."""
        raise NotImplementedError

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
        names: Container[str] | None,
    ) -> None:
        self._turned = _from_right(header)
        super().__init__(cursor, self._seen(header), self._seen(align), base, names)
        self._look = formats.table(len(align))
        if self._turned:
            self._look.setProperty(Mark.TURNED, True)
            self._look.setAlignment(Qt.AlignmentFlag.AlignRight)
            self._look.setRightMargin(self._left)
        else:
            self._look.setLeftMargin(self._left)
        self._needs = [0.0] * len(align)
        self._most = max(1, min(_ROWS, _CELLS // len(align)))
        self._first = self._grid = self._insert()
        self._fill(self._grid, 0, self._seen(header), header=True)
        self._need(0)
        self._rows = 1

    @property
    def start(self) -> int:
        return self._first.firstPosition()

    def add(self, cells: Sequence[str], *, provisional: bool) -> None:
        cells = self._seen(cells)
        if self._rows >= self._most and not provisional:
            self._go_on()
        elif self._rows:
            self._grid.appendRows(1)
        self._fill(self._grid, self._rows, cells, header=False)
        if not provisional:
            if self._grid is self._first:
                self._measure(cells)
                self._need(self._rows)
            self._rows += 1

    def take_back(self) -> None:
        if self._grid.rows() > self._rows:
            self._grid.removeRows(self._rows, self._grid.rows() - self._rows)

    def _seen(self, cells: Sequence[str]) -> Sequence[str]:
        """In the order of the columns on the page: Qt's go from left to right."""
        return cells[::-1] if self._turned else cells

    def _go_on(self) -> None:
        """Another Qt table, as wide as the first, whose columns now stay as they are."""
        if self._grid is self._first:
            wanted = (max(width, 2.0 * Space.XL) for width in self._widths)
            self._look.setProperty(Mark.SHARES, ",".join(map(str, wanted)))
        _fit(
            self._grid, self._look, self._cursor.document().textWidth()
        )  # the page may be another one than at its beginning
        self._grid = self._insert()
        self._rows = 0

    def _need(self, row: int) -> None:
        """A row is in the first Qt table: its columns have room for its words."""
        cells = (self._first.cellAt(row, column) for column in range(len(self._align)))
        blocks = (cell.firstCursorPosition().block() for cell in cells)
        needs = [max(pair) for pair in zip(self._needs, map(_needed, blocks), strict=True)]
        if needs != self._needs:
            self._needs = needs
            self._look.setProperty(Mark.NEEDS, ",".join(map(str, needs)))
            _fit(self._first, self._look, self._cursor.document().textWidth())

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
            _write(inside, source, chars, self._names)


class _Lined(Table):
    """Each row is a line of letters of one width."""

    def __init__(
        self,
        cursor: QTextCursor,
        header: Sequence[str],
        align: Sequence[str],
        base: QTextBlockFormat,
        names: Container[str] | None,
    ) -> None:
        super().__init__(cursor, header, align, base, names)
        self._shape = formats.wide_row(self._left, ",".join(align))
        self._columns = [_NARROWEST] * len(align)
        self._line(header, header=True, provisional=False)
        self._start = cursor.block().position()

    @property
    def start(self) -> int:
        return self._start

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


def _needed(block: QTextBlock) -> float:
    """Px of a column that the text of a cell, which is in `block`, can be read in.

    A word may have several looks: it is as wide as its parts are together.
    """
    text, scale = block.text()[:_READ], theme.scale()
    ends = list(_ends(text))
    whole, word, longest, start = 0.0, 0.0, 0.0, 0
    inside = block.begin()
    while not inside.atEnd() and start < len(text):
        fragment = inside.fragment()
        metrics = QFontMetricsF(fragment.charFormat().font())
        stop = min(len(text), start + len(fragment.text()))
        for end in (*(at for at in ends if start < at < stop), stop):
            part = text[start:end]
            if SIGN in part:
                wide = word + _FORMULA * scale
                whole += _FORMULA * scale
            else:
                wide = word + metrics.horizontalAdvance(part.rstrip() if end in ends else part)
                whole += metrics.horizontalAdvance(part)
            longest = max(longest, wide)
            word, start = (0.0 if end in ends else wide), end
        inside += 1
    needed = max(min(longest, _LONGEST * scale), min(whole, _LEAST * scale))
    return math.ceil(needed) + 2.0 * Space.S + 1


def _ends(text: str) -> Iterator[int]:
    """Where lines of `text` may end, its own end too: where Qt ends them, but for the signs that
    part words, such as `/`."""
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Line, text)
    at = 0  # in Qt's count, where signs beyond the first 65536 are two
    for i, (before, after) in enumerate(pairwise(text), start=1):
        at += 1 + (ord(before) > 0xFFFF)
        unspaced = len(_UNSPACED.findall(before + after))
        if unspaced == 2 and (before + after).isalpha():
            yield i
        elif before.isspace() or unspaced or _HYPHEN.match(text, i):
            finder.setPosition(at)
            if finder.isAtBoundary():
                yield i
    yield len(text)


def _from_right(header: Sequence[str]) -> bool:
    """Whether more cells begin from right to left than from left to right."""
    signs = (map(unicodedata.bidirectional, cell) for cell in header)
    return sum(next((_STRONG[s] for s in cell if s in _STRONG), 0) for cell in signs) > 0


def _letters(text: str) -> int:
    """How many letters of one width `text` is wide."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def _write(
    cursor: QTextCursor, source: str, chars: QTextCharFormat, names: Container[str] | None
) -> None:
    if len(source) > SEGMENT:
        cursor.insertText(source, chars)
    else:
        runs.write(cursor, inline.parse(source, cell=True, names=names), chars)
