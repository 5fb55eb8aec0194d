"""Signs before items: far enough from the text, in the middle of its first line."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QTextBlock, QTextDocument

from app.ui.look import theme
from app.ui.look.theme import Space, Theme
from app.ui.markdown import markers
from app.ui.markdown.document import DocumentWriter
from app.ui.markdown.stream import MarkdownStream

TEXT = """- one
  - nested
    - third
- [x] done
- [ ] still to do

1. numbered

- \N{ARABIC LETTER ALEF}\N{ARABIC LETTER BEH}
"""
WIDTH = 400


def document_of(text: str) -> QTextDocument:
    result = QTextDocument()
    writer = DocumentWriter(result)
    stream = MarkdownStream(writer)
    stream.feed(text)
    stream.finish()
    result.setTextWidth(WIDTH)
    return result


def block_of(document: QTextDocument, text: str) -> QTextBlock:
    block = document.begin()
    while block.text() != text:
        block = block.next()
        assert block.isValid()
    return block


def painted(document: QTextDocument) -> QImage:
    size = document.size().toSize()
    result = QImage(size, QImage.Format.Format_RGB32)
    result.fill(QColor(theme.current().window))
    painter = QPainter(result)
    markers.paint(painter, document, QRectF(result.rect()))
    painter.end()
    return result


def inked(image: QImage, area: QRectF) -> int:
    """How many px of `area` are painted."""
    ground = QColor(theme.current().window)
    place = area.toAlignedRect()
    return sum(
        image.pixelColor(x, y) != ground
        for x in range(place.left(), place.right() + 1)
        for y in range(place.top(), place.bottom() + 1)
    )


def test_a_sign_has_its_distance_and_stands_at_the_first_line(look: Theme) -> None:
    document = document_of(TEXT)
    layout = document.documentLayout()
    for text in ("one", "nested", "third", "done"):
        block = block_of(document, text)
        area = markers.place(document, block, 6)
        line = block.layout().lineAt(0)
        top = layout.blockBoundingRect(block).top() + line.y()
        left = layout.blockBoundingRect(block).left() + line.naturalTextRect().left()
        assert left - area.right() == Space.S, text
        assert top < area.top() < area.bottom() < top + line.ascent(), text


def test_of_a_line_from_right_to_left_it_stands_at_the_right(look: Theme) -> None:
    document = document_of(TEXT)
    block = block_of(document, "\N{ARABIC LETTER ALEF}\N{ARABIC LETTER BEH}")
    area = markers.place(document, block, 6)
    assert area.left() > WIDTH - 60


def test_each_item_has_its_sign(look: Theme) -> None:
    document = document_of(TEXT)
    image = painted(document)
    inks = {
        text: inked(image, markers.place(document, block_of(document, text), 14))
        for text in ("one", "nested", "done", "still to do", "numbered")
    }
    assert inks["numbered"] > 0
    assert inks["one"] > inks["nested"] > 0  # a disc, and a circle
    assert inks["done"] > inks["still to do"] > 0  # with a tick, and without


@pytest.mark.parametrize("size", [12, 15, 22, 24])
@pytest.mark.parametrize("text", ["x", "# x", "### x", "אב", "# אב"])
def test_a_number_has_room(look: Theme, size: int, text: str) -> None:
    """Of any length, before text of any size and from either side."""
    look.set_text_size(size)
    try:
        for number in ("1.", "10.", "99)", "100.", "123456789."):
            document = document_of(f"{number} {text}\n")
            block = document.begin()
            at = document.documentLayout().blockBoundingRect(block)
            line = block.layout().lineAt(0).naturalTextRect().translated(at.topLeft())
            needed = QFontMetricsF(block.charFormat().font()).horizontalAdvance(number)
            right = block.textDirection() == Qt.LayoutDirection.RightToLeft
            room = WIDTH - line.right() if right else line.left()
            assert room >= needed + 2, number
            assert room <= max(needed + 8, 2 * size), number
    finally:
        look.set_text_size(15)


def test_the_sign_behind_a_number_is_behind_it_from_right_to_left_too(look: Theme) -> None:
    """A dot is low, and the number is not."""
    left, right = document_of("8. x\n"), document_of("8. אב\n")
    ends = []
    for document in (left, right):
        block = document.begin()
        at = document.documentLayout().blockBoundingRect(block).topLeft()
        line = block.layout().lineAt(0)
        base = at.y() + line.y() + line.ascent()
        image = painted(document)
        sides = [line.naturalTextRect().left(), 0.0]
        if document is right:
            sides = [WIDTH, line.naturalTextRect().translated(at).right()]
        start, width = sides[1], sides[0] - sides[1]
        columns = [QRectF(start + x, at.y(), 0.5, line.height()) for x in range(int(width))]
        inks = [x for x, column in enumerate(columns) if inked(image, column)]
        high = [
            x
            for x, column in enumerate(columns)
            if inked(image, QRectF(column.x(), at.y(), 0.5, base - at.y() - 5))
        ]
        ends.append((high[0] - inks[0], inks[-1] - high[-1]))
    assert ends[0][0] <= 1
    assert ends[0][1] >= 3
    assert ends[1][0] >= 3
    assert ends[1][1] <= 1


def test_a_number_stands_on_the_line_of_its_text(look: Theme) -> None:
    """Whatever part of a px the line is at: the same sign looks the same in both places."""
    document = document_of("".join(f"{n}. 7\n\n" for n in (7, 17, 77)) + "text\n\n7. 7\n")
    size = document.size().toSize()
    image = QImage(size, QImage.Format.Format_RGB32)
    image.fill(QColor(theme.current().window))
    painter = QPainter(image)
    markers.paint(painter, document, QRectF(image.rect()))
    document.drawContents(painter)
    painter.end()
    block, ground = document.begin(), QColor(theme.current().window)
    while block.isValid():
        if block.textList():
            at = document.documentLayout().blockBoundingRect(block)
            left = round(at.left() + block.layout().lineAt(0).naturalTextRect().left())

            def top(start: int, end: int, at: QRectF = at) -> tuple[int, QColor]:
                """Of a 7, which has a bar there."""
                lines, columns = range(int(at.top()), int(at.bottom())), range(start, end)
                inks = ((y, [image.pixelColor(x, y) for x in columns]) for y in lines)
                y, row = next((y, row) for y, row in inks if any(ink != ground for ink in row))
                return y, min(row, key=QColor.lightness)

            number, text = top(0, left - 1), top(left, left + 20)
            assert number[0] == text[0]
            assert abs(number[1].lightness() - text[1].lightness()) < 25
        block = block.next()


def test_signs_grow_with_the_text(look: Theme) -> None:
    """They keep their distance, and have room."""
    wide: dict[str, list[int]] = {}
    for size in (15, 30):
        look.set_text_size(size)
        try:
            document = document_of(TEXT)
            image = painted(document)
            for text in ("one", "nested", "done"):
                block = block_of(document, text)
                line = block.layout().lineAt(0).naturalTextRect()
                at = document.documentLayout().blockBoundingRect(block).topLeft()
                row = markers.place(document, block, 4)
                left = (at.x() + line.left()) - 2 * size
                strip = QRectF(left, row.top(), 2 * size - 1, row.height())
                columns = [
                    x
                    for x in range(max(0, round(strip.left())), round(strip.right()))
                    if inked(image, QRectF(x, strip.top(), 0.5, strip.height()))
                ]
                assert columns, text
                wide.setdefault(text, []).append(columns[-1] - columns[0] + 1)
        finally:
            look.set_text_size(15)
    for text, (usual, large) in wide.items():
        assert 1.6 * usual <= large <= 2.4 * usual, text
