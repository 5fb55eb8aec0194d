"""The shapes of text: margins, line heights, faces and colours of each kind of block."""

from __future__ import annotations

import math
from enum import IntEnum, auto
from functools import lru_cache
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QTextBlockFormat,
    QTextCharFormat,
    QTextFormat,
    QTextLength,
    QTextListFormat,
    QTextTableCellFormat,
    QTextTableFormat,
)

from app.ui.look import theme
from app.ui.look.palette import Palette
from app.ui.look.theme import LINE_HEIGHT, MONO, SANS, Size, Space

CODE_HEADER: Final = 36
"""Height in px of the strip above code, for its language and the copy button."""

_INDENT: Final = 28.0

DEEPEST: Final = 10
"""Quotes and lists within each other up to which a deeper one is indented further."""

CELL_PADDING: Final = 6

EDGE: Final = " │ "
"""What parts the cells of a row that is a line."""

TAB: Final = 4
"""Columns of code from one tab stop to the next."""

NUMBER_GAP: Final = 6.0
"""Px between an item's number and its text."""


class Mark(IntEnum):
    """What text is beyond its looks, as properties of its format: `copying` reads them."""

    CONTINUES = QTextFormat.Property.UserProperty + 1  # block: no newline stands before it
    QUOTES = auto()  # block: how many quotes it is in
    CODE = auto()  # block: a line of code, in this language
    RULE = auto()  # block
    SEAM = auto()  # block: it only parts tables
    WIDE_ROW = auto()  # block: a row of a table, as a line; the columns' sides
    NOTE = auto()  # block: a footnote
    TURNED = auto()  # table: its first column is at the right
    ALONE = auto()  # block: a formula that stands alone
    NUMBER = auto()  # list: of its item, with the sign behind it
    NEEDS = auto()  # table: px that each column needs, a comma between two
    SHARES = auto()  # table: the same of what its columns share the page by, where they do
    STRONG = auto()  # characters, as all below
    EMPHASIS = auto()
    STRIKE = auto()
    RUN = auto()  # code, formula, note, escaped
    SOURCE = auto()  # of a formula that is an object, with the signs around it
    PX = auto()  # of that formula's type
    FITTED = auto()  # its font is fitted to it


def indent() -> float:
    """Width in px of a level of lists: room for two digits and a point."""
    return _INDENT * theme.scale()


def tab_stop() -> float:
    """Px from one tab stop to the next."""
    return TAB * QFontMetricsF(code_chars().font()).horizontalAdvance("0")


def number_room(number: str, kind: str) -> float:
    """Px that an item's number, with its sign, needs before text of `kind`."""
    return math.ceil(QFontMetricsF(chars(kind).font()).horizontalAdvance(number)) + NUMBER_GAP


def paragraph(top: float = 0) -> QTextBlockFormat:
    result = QTextBlockFormat()
    result.setTopMargin(top)
    result.setLineHeight(LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    return result


def heading(level: int, top: float) -> QTextBlockFormat:
    result = paragraph(top)
    result.setHeadingLevel(level)
    return result


def code_line(language: str, top: float = 0) -> QTextBlockFormat:
    result = QTextBlockFormat()
    result.setTopMargin(top)
    result.setLeftMargin(Space.L)
    result.setRightMargin(Space.L)
    result.setLineHeight(115, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    result.setNonBreakableLines(not theme.wraps_code())
    result.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # also of an Arabic comment
    result.setProperty(Mark.CODE, language)
    return result


def rule(top: float) -> QTextBlockFormat:
    result = QTextBlockFormat()
    result.setTopMargin(top)
    result.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
    result.setProperty(Mark.RULE, True)
    return result


def seam(top: float = 0) -> QTextBlockFormat:
    """The block that Qt wants before and after a table, made as flat as can be."""
    result = QTextBlockFormat()
    result.setTopMargin(top)
    result.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
    result.setProperty(Mark.SEAM, True)
    return result


def wide_row(left: float, sides: str) -> QTextBlockFormat:
    result = code_line("")
    result.clearProperty(Mark.CODE)
    result.setLeftMargin(left)
    result.setNonBreakableLines(True)
    result.setProperty(Mark.WIDE_ROW, sides)
    return result


def chars(kind: str = "") -> QTextCharFormat:
    return QTextCharFormat(_chars(kind, theme.current(), theme.points(theme.scale())))


@lru_cache(maxsize=64)
def _chars(kind: str, colours: Palette, size_now: float) -> QTextCharFormat:
    """`size_now` is that of a px in points: what is kept holds for that."""
    result = QTextCharFormat()
    weight = QFont.Weight.Normal
    size = Size.BODY
    if kind.startswith("h") and kind[1:].isdigit():
        size, weight = Size.HEADINGS[int(kind[1]) - 1], QFont.Weight.DemiBold
    elif kind == "th":
        weight = QFont.Weight.DemiBold
    result.setFontFamilies(theme.font(size).families())
    result.setFontPointSize(theme.font(size).pointSizeF())
    result.setFontWeight(weight)
    result.setForeground(QColor(colours.text))
    return result


def code_chars() -> QTextCharFormat:
    return QTextCharFormat(_code_chars(theme.current(), theme.points(theme.scale())))


@lru_cache(maxsize=8)
def _code_chars(colours: Palette, size_now: float) -> QTextCharFormat:
    result = QTextCharFormat()
    font = QFont([MONO, SANS, "Noto Sans Mono", "Noto Color Emoji"])
    font.setPointSizeF(theme.font(Size.CODE).pointSizeF())
    theme.without_ligatures(font)
    result.setFont(font, QTextCharFormat.FontPropertiesInheritanceBehavior.FontPropertiesAll)
    result.setForeground(QColor(colours.text))
    return result


def formula(base: QTextCharFormat) -> QTextCharFormat:
    """A formula that is shown as its source."""
    result = QTextCharFormat(base)
    result.setFontFamilies(code_chars().fontFamilies())
    result.setProperty(Mark.RUN, "formula")
    return result


def footnote(base: QTextCharFormat) -> QTextCharFormat:
    result = QTextCharFormat(base)
    result.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignSuperScript)
    result.setProperty(Mark.RUN, "note")
    return result


def emphasis(base: QTextCharFormat, kind: Mark) -> QTextCharFormat:
    result = QTextCharFormat(base)
    result.setProperty(kind, True)
    match kind:
        case Mark.STRONG:
            result.setFontWeight(QFont.Weight.DemiBold)
        case Mark.EMPHASIS:
            result.setFontItalic(True)
        case Mark.STRIKE:
            result.setFontStrikeOut(True)
    return result


def escaped(base: QTextCharFormat) -> QTextCharFormat:
    result = QTextCharFormat(base)
    result.setProperty(Mark.RUN, "escaped")
    return result


def inline_code(base: QTextCharFormat) -> QTextCharFormat:
    result = code_chars()
    result.setFontWeight(base.fontWeight())
    result.setFontItalic(base.fontItalic())
    result.setFontStrikeOut(base.fontStrikeOut())
    for mark in (Mark.STRONG, Mark.EMPHASIS, Mark.STRIKE):
        if base.property(mark):
            result.setProperty(mark, True)
    if base.isAnchor():
        result = link(result, base.anchorHref())
    result.setProperty(Mark.RUN, "code")
    result.setBackground(QColor(theme.current().hover))
    return result


def link(base: QTextCharFormat, address: str) -> QTextCharFormat:
    result = QTextCharFormat(base)
    result.setAnchor(True)
    result.setAnchorHref(address)
    result.setFontUnderline(True)
    result.setUnderlineColor(QColor(theme.current().muted))
    result.setToolTip(address)
    return result


def marker(number: int | None, mark: str, depth: int) -> QTextListFormat:
    """The marker of one item, `depth` (from 1) lists deep, which `markers` paints."""
    result = QTextListFormat()
    result.setStyle(QTextListFormat.Style.ListStyleUndefined)
    if number is not None:
        result.setProperty(Mark.NUMBER, f"{number}{mark}")
    result.setIndent(min(depth, DEEPEST))
    return result


def table(columns: int) -> QTextTableFormat:
    result = QTextTableFormat()
    result.setBorderCollapse(True)
    result.setBorder(0)
    result.setCellPadding(CELL_PADDING)
    result.setCellSpacing(0)
    result.setHeaderRowCount(0)
    result.setWidth(QTextLength())
    result.setColumnWidthConstraints([QTextLength(QTextLength.Type.VariableLength, 0)] * columns)
    return result


def cell(*, header: bool) -> QTextTableCellFormat:
    """A cell, with the line under its row."""
    result = QTextTableCellFormat()
    result.setLeftPadding(Space.S)  # a number and the word at its right are not to be one
    result.setRightPadding(Space.S)
    result.setBottomBorder(1)
    result.setBottomBorderStyle(QTextTableFormat.BorderStyle.BorderStyle_Solid)
    colours = theme.current()
    result.setBottomBorderBrush(QColor(colours.line_strong if header else colours.line))
    return result
