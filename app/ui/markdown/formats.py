"""The shapes of text: margins, line heights, faces and colours of each kind of block."""

from __future__ import annotations

from typing import Final

from markdown_it.token import Token
from PySide6.QtGui import (
    QColor,
    QFont,
    QTextBlockFormat,
    QTextCharFormat,
    QTextLength,
    QTextListFormat,
    QTextTableFormat,
)

from app.ui.look import theme
from app.ui.look.theme import LINE_HEIGHT, MONO, SANS, Size, Space
from app.ui.markdown.stream import list_start

CODE_HEADER: Final = 36
"""Height in px of the strip above code, for its language and the copy button."""

_BULLETS: Final = (
    QTextListFormat.Style.ListDisc,
    QTextListFormat.Style.ListCircle,
    QTextListFormat.Style.ListSquare,
)


def paragraph(bottom: int = Space.M) -> QTextBlockFormat:
    result = QTextBlockFormat()
    result.setBottomMargin(bottom)
    result.setLineHeight(LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    return result


def heading(level: int) -> QTextBlockFormat:
    result = paragraph(Space.S)
    result.setTopMargin(Space.L if level > 1 else Space.S)
    result.setHeadingLevel(level)
    return result


def code_line(*, first: bool = False) -> QTextBlockFormat:
    result = paragraph(0)
    result.setLeftMargin(Space.L)
    result.setRightMargin(Space.L)
    result.setLineHeight(115, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    if first:
        result.setTopMargin(CODE_HEADER + Space.M)
    return result


def bottom_margin(margin: int) -> QTextBlockFormat:
    result = QTextBlockFormat()
    result.setBottomMargin(margin)
    return result


def spacer() -> QTextBlockFormat:
    result = QTextBlockFormat()
    result.setLineHeight(2, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
    return result


def chars(kind: str = "") -> QTextCharFormat:
    result = QTextCharFormat()
    weight = QFont.Weight.Normal
    size = Size.BODY
    if kind.startswith("h") and kind[1:].isdigit():
        size, weight = Size.HEADINGS[int(kind[1]) - 1], QFont.Weight.DemiBold
    elif kind == "th":
        weight = QFont.Weight.DemiBold
    result.setFontFamilies(theme.font(size).families())
    result.setFontPointSize(theme.points(size))
    result.setFontWeight(weight)
    result.setForeground(QColor(theme.current().text))
    return result


def code_chars() -> QTextCharFormat:
    result = chars()
    result.setFontFamilies([MONO, SANS, "Noto Sans Mono", "Noto Color Emoji"])
    result.setFontPointSize(theme.points(Size.CODE))
    return result


def inline_code(base: QTextCharFormat) -> QTextCharFormat:
    result = QTextCharFormat(base)
    result.setFontFamilies(code_chars().fontFamilies())
    result.setFontPointSize(theme.points(Size.CODE))
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


def numbering(token: Token, depth: int, number: int) -> QTextListFormat:
    result = QTextListFormat()
    if token.type == "ordered_list_open":
        result.setStyle(QTextListFormat.Style.ListDecimal)
        result.setStart(number or list_start(token))
    else:
        result.setStyle(_BULLETS[min(depth, len(_BULLETS) - 1)])
        result.setStart(1)
    result.setIndent(depth + 1)
    return result


def table(columns: int) -> QTextTableFormat:
    result = QTextTableFormat()
    result.setBorderCollapse(True)
    result.setBorder(1)
    result.setBorderBrush(QColor(theme.current().line_strong))
    result.setBorderStyle(QTextTableFormat.BorderStyle.BorderStyle_Solid)
    result.setCellPadding(6)
    result.setCellSpacing(0)
    result.setBottomMargin(Space.S)
    result.setHeaderRowCount(1)
    result.setColumnWidthConstraints([QTextLength(QTextLength.Type.VariableLength, 0)] * columns)
    return result
