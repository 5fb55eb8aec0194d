"""What stands before items: numbers, bullets, and the boxes of tasks.

Qt draws signs a blank before the text, which is too near, and crosses a task out that is done;
its numbers miss the line of the text by a px, and go where the text is marked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFontMetricsF,
    QPainter,
    QPen,
    QTextBlock,
    QTextBlockFormat,
    QTextDocument,
)

from app.ui.look import theme
from app.ui.look.theme import Size, Space
from app.ui.markdown.formats import NUMBER_GAP, Mark

_BULLET: Final = 5.0
_BOX: Final = 14.0
"""Widths in px, of text of the usual size."""

_Marker = QTextBlockFormat.MarkerType


def paint(painter: QPainter, document: QTextDocument, seen: QRectF) -> None:
    """Those of the items in `seen`."""
    scale = theme.scale()
    for block in _blocks(document, seen):
        items = block.textList()
        if not items:
            continue
        task = block.blockFormat().marker()
        if task != _Marker.NoMarker:
            letters = QFontMetricsF(theme.font(Size.BODY))
            higher = (letters.capHeight() - letters.xHeight()) / 2  # it is as high as capitals are
            box = place(document, block, _BOX * scale).translated(0, -higher)
            _paint_box(painter, box, task == _Marker.Checked)
        elif number := items.format().property(Mark.NUMBER):
            _paint_number(painter, document, block, str(number))
        else:
            bullet = place(document, block, _BULLET * scale)
            _paint_bullet(painter, bullet, items.format().indent())


def place(document: QTextDocument, block: QTextBlock, size: float) -> QRectF:
    """Of a sign that is `size` px wide: in the middle of the first line's small letters."""
    at = document.documentLayout().blockBoundingRect(block).topLeft()  # lays it out
    line = block.layout().lineAt(0)
    text = line.naturalTextRect().translated(at)
    middle = at.y() + line.y() + line.ascent() - theme.x_height(Size.BODY) / 2
    if block.textDirection() == Qt.LayoutDirection.RightToLeft:
        left = text.right() + Space.S
    else:
        left = text.left() - Space.S - size
    return QRectF(left, middle - size / 2, size, size)


def _paint_number(
    painter: QPainter, document: QTextDocument, block: QTextBlock, number: str
) -> None:
    """On the base line of the text, in its type."""
    at = document.documentLayout().blockBoundingRect(block).topLeft()
    line = block.layout().lineAt(0)
    text = line.naturalTextRect().translated(at)
    font = block.charFormat().font()
    if block.textDirection() == Qt.LayoutDirection.RightToLeft:
        left = text.right() + NUMBER_GAP
    else:
        left = text.left() - NUMBER_GAP - QFontMetricsF(font).horizontalAdvance(number)
    painter.setFont(font)
    painter.setPen(QColor(theme.current().text))
    painter.setLayoutDirection(block.textDirection())  # its sign stands behind it
    painter.drawText(QPointF(left, at.y() + line.y() + line.ascent()), number)


def _blocks(document: QTextDocument, seen: QRectF) -> Iterator[QTextBlock]:
    layout = document.documentLayout()
    top = QPointF(seen.left(), seen.top())
    block = document.findBlock(max(0, layout.hitTest(top, Qt.HitTestAccuracy.FuzzyHit)))
    while block.isValid() and layout.blockBoundingRect(block).top() <= seen.bottom():
        yield block
        block = block.next()


def _paint_bullet(painter: QPainter, area: QRectF, depth: int) -> None:
    colour = QColor(theme.current().text)
    painter.setPen(QPen(colour, theme.scale()))
    painter.setBrush(Qt.BrushStyle.NoBrush if depth == 2 else QBrush(colour))
    inside = area.adjusted(0.5, 0.5, -0.5, -0.5)
    if depth > 2:
        painter.drawRect(inside)
    else:
        painter.drawEllipse(inside)


def _paint_box(painter: QPainter, area: QRectF, done: bool) -> None:
    colours, scale, size = theme.current(), theme.scale(), area.width()
    painter.setPen(QPen(QColor(colours.text if done else colours.muted), 1.2 * scale))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    edge, round_ = 0.6 * scale, 3 * scale
    painter.drawRoundedRect(area.adjusted(edge, edge, -edge, -edge), round_, round_)
    if done:
        painter.setPen(QPen(QColor(colours.text), 1.6 * scale))
        corners = [(0.26, 0.52), (0.43, 0.69), (0.74, 0.34)]
        points = [area.topLeft() + QPointF(x * size, y * size) for x, y in corners]
        painter.drawPolyline(points)
