"""Markdown blocks as blocks of a QTextDocument.

Closed blocks stay; the tail after them is removed and written again. What Qt cannot
draw (rounded grounds of code, bars of quotes, rules) is kept as `Decoration`s, which
`TextView` paints. A line longer than `CHUNK` is cut into several text blocks, because
Qt shapes a text block whole; `plain_text` joins them again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from markdown_it.token import Token
from PySide6.QtGui import (
    QColor,
    QFont,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextListFormat,
)

from app.ui.look import theme
from app.ui.look.theme import Size, Space
from app.ui.markdown import formats

CHUNK: Final = 2_000
"""Characters of a line that are laid out in one text block."""

_CONTINUES: Final = QTextFormat.Property.UserProperty + 1  # this block has no newline before it
_LINE_SEPARATOR: Final = "\u2028"
_URL: Final = re.compile(r"\bhttps?://[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]]")
_MARKUP: Final = frozenset("*_`~#|")  # what a backslash may hide; other escapes keep it


class Kind(Enum):
    CODE = auto()
    QUOTE = auto()
    RULE = auto()


@dataclass(frozen=True, slots=True)
class Decoration:
    """What is painted behind the text from position `start` to `end`."""

    kind: Kind
    start: int
    end: int
    depth: int = 0
    language: str = ""
    open: bool = False  # more text may come


class DocumentWriter:
    """A `markdown.Sink` that writes into `document`, which is its own."""

    def __init__(self, document: QTextDocument, role: str = "text") -> None:
        self._role = role
        document.setUndoRedoEnabled(False)
        document.setDocumentMargin(0)
        document.setIndentWidth(Space.XL)
        self._document = document
        self.clear()

    def clear(self) -> None:
        self._document.clear()
        self._document.setDefaultFont(theme.font(Size.BODY))
        self._cursor = QTextCursor(self._document)
        self._fresh = self._empty = True  # for the next block, and without the tail
        self._closed_end = 0
        self._closed: list[Decoration] = []
        self._decorations = self._closed
        self._depth = self._quotes = 0
        self._column = 0
        self._open_block: QTextBlockFormat | None = None
        self._open_chars = QTextCharFormat()

    @property
    def decorations(self) -> Sequence[Decoration]:
        return self._decorations

    @property
    def closed(self) -> Sequence[Decoration]:
        """Those that stay where they are; only the last may be open."""
        return self._closed

    # --- what markdown.MarkdownStream tells -------------------------------------

    def block(self, tokens: Sequence[Token], number: int) -> None:
        self._begin()
        self._write(tokens, number)
        self._end(closed=True)

    def tail(self, tokens: Sequence[Token], number: int) -> None:
        self._begin()
        self._write(tokens, number)
        self._end(closed=False)

    def open_code(self, language: str) -> None:
        self._begin()
        self._new_block(formats.code_line(first=True), formats.code_chars())
        here = self._cursor.block().position()
        self._closed.append(Decoration(Kind.CODE, here, here, 0, language, open=True))
        self._open_block, self._open_chars = formats.code_line(), formats.code_chars()
        self._column = 0
        self._end(closed=True)

    def open_plain(self) -> None:
        self._begin()
        self._open_block, self._open_chars = formats.paragraph(0), formats.chars()
        self._open_chars.setForeground(QColor(getattr(theme.current(), self._role)))
        self._new_block(self._open_block, self._open_chars)
        self._column = 0
        self._end(closed=True)

    def more(self, text: str) -> None:
        if not text or self._open_block is None:
            return
        self._cursor.beginEditBlock()
        code = self._closed[-1] if self._closed and self._closed[-1].open else None
        if code:
            self._cursor.mergeBlockFormat(formats.bottom_margin(0))
        self._append(text, self._open_block, self._open_chars)
        if code:
            self._cursor.mergeBlockFormat(formats.bottom_margin(Space.XL))
            self._closed[-1] = replace(code, end=self._cursor.position())
        self._end(closed=True)

    def close(self) -> None:
        if self._closed and self._closed[-1].open:
            self._closed[-1] = replace(self._closed[-1], open=False)
        self._open_block = None

    # --- edits ------------------------------------------------------------------

    def _begin(self) -> None:
        """Remove the tail."""
        self._cursor.beginEditBlock()
        self._cursor.setPosition(self._closed_end)
        last = self._cursor.blockFormat()
        self._cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        if self._cursor.hasSelection():
            self._cursor.removeSelectedText()
            # Where the last closed block is empty, Qt gives it the format of the removed one.
            self._cursor.setBlockFormat(last)
        self._fresh = self._empty
        self._decorations = list(self._closed)

    def _end(self, *, closed: bool) -> None:
        self._cursor.endEditBlock()
        if closed:
            self._empty = False
            self._closed_end = self._cursor.position()
            if self._decorations is not self._closed:
                added = self._decorations[len(self._closed) :]
                self._closed.extend(added)
            self._decorations = self._closed

    def _new_block(self, block: QTextBlockFormat, chars: QTextCharFormat) -> None:
        if self._fresh:
            self._set_top(block.topMargin())
            self._cursor.setBlockFormat(block)
            self._cursor.setBlockCharFormat(chars)
            self._cursor.setCharFormat(chars)
            self._fresh = False
        else:
            self._cursor.insertBlock(block, chars)

    def _set_top(self, margin: float) -> None:
        """Room above the first block, whose own top margin Qt ignores."""
        root = self._document.rootFrame()
        look = root.frameFormat()
        if look.topMargin() != margin:
            look.setTopMargin(margin)
            root.setFrameFormat(look)

    def _append(self, text: str, block: QTextBlockFormat, chars: QTextCharFormat) -> None:
        """Insert lines, long ones in chunks; `_column` is where the line stands."""
        first, newline, rest = text.partition("\n")
        self._line(first, block, chars)
        if not newline:
            return
        self._cursor.insertBlock(block, chars)
        self._column = 0
        if max(map(len, rest.split("\n"))) < CHUNK:
            self._cursor.insertText(rest, chars)
            self._column = len(rest) - rest.rfind("\n") - 1
            return
        for i, line in enumerate(rest.split("\n")):
            if i:
                self._cursor.insertBlock(block, chars)
                self._column = 0
            self._line(line, block, chars)

    def _line(self, text: str, block: QTextBlockFormat, chars: QTextCharFormat) -> None:
        while len(text) > (room := CHUNK - self._column):
            self._cursor.insertText(text[:room], chars)
            continued = QTextBlockFormat(block)
            continued.setProperty(_CONTINUES, True)
            self._cursor.insertBlock(continued, chars)
            self._column, text = 0, text[room:]
        self._cursor.insertText(text, chars)
        self._column += len(text)

    # --- tokens -----------------------------------------------------------------

    def _write(self, tokens: Sequence[Token], number: int) -> None:
        lists: list[QTextListFormat] = []
        marker: QTextListFormat | None = None
        starts: list[int] = []
        tables: list[list[list[Token]]] = []
        kind = ""
        for token in tokens:
            match token.type:
                case "bullet_list_open" | "ordered_list_open":
                    lists.append(formats.numbering(token, len(lists), number if not lists else 0))
                case "bullet_list_close" | "ordered_list_close":
                    lists.pop()
                case "list_item_open":
                    marker = lists[-1]
                    self._depth += 1
                case "list_item_close":
                    if marker is lists[-1]:  # an item without text
                        self._item(marker)
                    marker = None
                    self._depth -= 1
                    lists[-1].setStart(lists[-1].start() + 1)
                case "blockquote_open":
                    starts.append(-1 if self._fresh else self._cursor.position())
                    self._quotes += 1
                case "blockquote_close":
                    self._quotes -= 1
                    start, end = starts.pop() + 1, self._cursor.position()
                    quote = Decoration(Kind.QUOTE, start, end, self._quotes)
                    self._decorations.append(quote)
                case "table_open":
                    tables.append([])
                case "tr_open":
                    tables[-1].append([])
                case "table_close":
                    self._table(tables.pop())
                case "heading_open" | "paragraph_open":
                    kind = token.tag
                case "inline" if tables:
                    tables[-1][-1].append(token)
                case "inline":
                    if marker:
                        self._item(marker)
                        marker = None
                    else:
                        self._text_block(kind)
                    self._inline(token.children or [], formats.chars(kind))
                case "fence" | "code_block":
                    self._code(token)
                case "hr":
                    self._rule()

    def _item(self, marker: QTextListFormat) -> None:
        """Begin a list item. Each is a list of its own: items close one by one."""
        block = self._indented(formats.paragraph(Space.S))
        block.setIndent(0)  # the list's own indent counts
        self._new_block(block, formats.chars())
        self._cursor.createList(marker)

    def _text_block(self, kind: str) -> None:
        block = formats.heading(int(kind[1])) if kind.startswith("h") else formats.paragraph()
        self._new_block(self._indented(block), formats.chars(kind))

    def _indented(self, block: QTextBlockFormat) -> QTextBlockFormat:
        block.setLeftMargin(block.leftMargin() + self._quotes * Space.L)
        if self._depth:
            block.setIndent(self._depth)
        return block

    def _code(self, token: Token) -> None:
        text = token.content.removesuffix("\n")
        depth = self._depth
        self._new_block(self._indented(formats.code_line(first=True)), formats.code_chars())
        start = self._cursor.block().position()
        middle = self._indented(formats.code_line())
        self._column = 0
        self._append(text, middle, formats.code_chars())
        self._cursor.mergeBlockFormat(formats.bottom_margin(Space.XL))
        end = self._cursor.position()
        self._decorations.append(Decoration(Kind.CODE, start, end, depth, token.info.strip()))

    def _rule(self) -> None:
        block = formats.paragraph(Space.M)
        block.setTopMargin(Space.L)
        block.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        self._new_block(self._indented(block), formats.chars())
        here = self._cursor.position()
        self._decorations.append(Decoration(Kind.RULE, here, here))

    def _table(self, rows: list[list[Token]]) -> None:
        columns = max(map(len, rows))
        look = formats.table(columns)
        # Qt puts a table between two text blocks: both are made as flat as can be.
        self._new_block(formats.spacer(), formats.chars())
        table = self._cursor.insertTable(len(rows), columns, look)
        for r, row in enumerate(rows):
            for c, cell in enumerate(row):
                inside = table.cellAt(r, c).firstCursorPosition()
                inside.setBlockFormat(formats.paragraph(0))
                outside, self._cursor = self._cursor, inside
                self._inline(cell.children or [], formats.chars("th" if r == 0 else ""))
                self._cursor = outside
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        self._cursor.setBlockFormat(formats.spacer())

    def _inline(self, tokens: Sequence[Token], base: QTextCharFormat) -> None:
        looks = [base]
        for token in tokens:
            now = QTextCharFormat(looks[-1])
            match token.type:
                case "text":
                    self._linked(token.content, now)
                case "text_special":
                    hidden = token.content in _MARKUP
                    self._cursor.insertText(token.content if hidden else token.markup, now)
                case "softbreak" | "hardbreak":
                    self._cursor.insertText(_LINE_SEPARATOR, now)
                case "code_inline":
                    self._cursor.insertText(token.content, formats.inline_code(now))
                case "image":  # never fetched: its words and its address are shown
                    address = str(token.attrGet("src") or "")
                    self._cursor.insertText(f"{token.content} ", now)
                    self._cursor.insertText(address, formats.link(now, address))
                case "strong_open":
                    now.setFontWeight(QFont.Weight.DemiBold)
                    looks.append(now)
                case "em_open":
                    now.setFontItalic(True)
                    looks.append(now)
                case "s_open":
                    now.setFontStrikeOut(True)
                    looks.append(now)
                case "link_open":
                    looks.append(formats.link(now, str(token.attrGet("href") or "")))
                case "strong_close" | "em_close" | "s_close" | "link_close":
                    looks.pop()

    def _linked(self, text: str, chars: QTextCharFormat) -> None:
        """Insert `text`, in which bare addresses are links."""
        at = 0
        if not chars.isAnchor():
            for match in _URL.finditer(text):
                self._cursor.insertText(text[at : match.start()], chars)
                self._cursor.insertText(match[0], formats.link(chars, match[0]))
                at = match.end()
        self._cursor.insertText(text[at:], chars)


def plain_text(document: QTextDocument, start: int, end: int) -> str:
    """The text between two positions as it was written, list markers included."""
    parts: list[str] = []
    block = document.findBlock(start)
    while block.isValid() and block.position() <= end:
        first = block.position() >= start
        if parts and not block.blockFormat().property(_CONTINUES):
            parts.append("\n")
        if first and (items := block.textList()):
            style = items.format().style()
            decimal = style == QTextListFormat.Style.ListDecimal
            parts.append(f"{items.itemText(block)} " if decimal else "- ")
        at = block.position()
        text = _utf16_slice(block.text(), max(0, start - at), end - at)
        parts.append(text.replace(_LINE_SEPARATOR, "\n"))
        block = block.next()
    return "".join(parts)


def utf16_length(text: str) -> int:
    """The length of `text` as Qt counts it."""
    return len(text) + sum(c > "\uffff" for c in text)


def _utf16_slice(text: str, start: int, end: int) -> str:
    if text.isascii():
        return text[start:end]
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le", "replace")


def code_blocks(document: QTextDocument, code: Decoration) -> list[QTextBlock]:
    result = []
    block = document.findBlock(code.start)
    while block.isValid() and block.position() <= code.end:
        result.append(block)
        block = block.next()
    return result
