"""Markdown's blocks as blocks of a QTextDocument.

What was told stays; what was told provisionally is removed before the next piece. What Qt
cannot draw (rounded grounds of code, bars of quotes, rules) is kept as `Decoration`s, which
`TextView` paints. A line longer than `CHUNK` is cut into several text blocks, because Qt
shapes a text block whole; `copying` joins them again.

All room between blocks is above the lower one: what follows never moves what stands.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QColor,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)

from app.ui.look import theme
from app.ui.look.theme import Size, Space
from app.ui.markdown import formats, inline, runs
from app.ui.markdown.formats import CODE_HEADER, DEEPEST, Mark
from app.ui.markdown.table import WIDE, Table
from app.ui.markdown.visible import visible

CHUNK: Final = 2_000
"""Characters of a line that are laid out in one text block."""

_TASKS: Final = {
    "[ ] ": QTextBlockFormat.MarkerType.Unchecked,
    "[x] ": QTextBlockFormat.MarkerType.Checked,
    "[X] ": QTextBlockFormat.MarkerType.Checked,
}


class Kind(Enum):
    CODE = auto()
    WIDE = auto()  # a table whose rows are lines
    GRID = auto()  # another table
    FORMULA = auto()  # one that stands alone
    QUOTE = auto()
    RULE = auto()


@dataclass(frozen=True, slots=True)
class Decoration:
    """What is painted behind the text from position `start` to `end`, from `left` px on."""

    kind: Kind
    start: int
    end: int
    left: float = 0.0
    language: str = ""
    open: bool = False  # more text may come


@dataclass(slots=True)
class _Frame:
    """A quote, or an item of a list, that is open."""

    decoration: int | None = None  # of a quote that has text
    item: tuple[int | None, str, bool] | None = None  # what `Page.item` told
    marked: bool = True  # the item's marker is on the page


@dataclass(slots=True)
class _Place:
    """Where writing goes on."""

    frames: list[_Frame] = field(default_factory=list)
    fresh: bool = True  # nothing is on the page
    last: str = ""  # the kind of the block before
    depth: int = 0  # how many items that was in
    column: int = 0  # of the last line of code or plain text
    code: int | None = None  # the decoration of the code that is open
    begun: bool = False  # that code has a line
    table: Table | None = None
    table_at: int | None = None  # the decoration of that table
    shape: QTextBlockFormat = field(default_factory=QTextBlockFormat)  # of lines that follow
    chars: QTextCharFormat = field(default_factory=QTextCharFormat)

    def copy(self) -> _Place:
        return replace(self, frames=[replace(frame) for frame in self.frames])

    @property
    def quotes(self) -> int:
        return sum(frame.item is None for frame in self.frames)

    @property
    def items(self) -> int:
        return sum(frame.item is not None for frame in self.frames)


class DocumentWriter:
    """A `stream.Sheet` that writes into `document`, which is its own."""

    def __init__(self, document: QTextDocument, role: str = "text") -> None:
        self._role = role
        self.names: Container[str] | None = None  # see `inline.parse`
        document.setUndoRedoEnabled(False)
        document.setDocumentMargin(0)
        self.document = document
        self.clear()

    def clear(self) -> None:
        self.document.clear()
        self.document.setIndentWidth(formats.indent())
        self.document.setDefaultFont(theme.font(Size.BODY))
        option = self.document.defaultTextOption()
        option.setTabStopDistance(formats.tab_stop())
        self.document.setDefaultTextOption(option)
        self._cursor = QTextCursor(self.document)
        self._place = self._closed_place = _Place()
        self._decorations: list[Decoration] = []
        self._closed: list[Decoration] = []
        self._closed_end = 0
        self._provisional = False
        self._code: list[str] = []  # lines of code that are told and not yet written

    @property
    def decorations(self) -> Sequence[Decoration]:
        return self._decorations

    @property
    def closed(self) -> Sequence[Decoration]:
        """Those that stay where they are; only the last may be open."""
        return self._closed

    @property
    def firm(self) -> int:
        """A position up to which nothing is taken back."""
        table = self._closed_place.table
        return table.start if table else self._closed_end

    # --- plain text ---------------------------------------------------------------

    def open_plain(self) -> None:
        self._cursor.beginEditBlock()
        chars = formats.chars()
        chars.setForeground(QColor(getattr(theme.current(), self._role)))
        self._place.shape, self._place.chars = formats.paragraph(), chars
        self._new_block("p", self._place.shape, chars)
        self._place.column = 0
        self._cursor.endEditBlock()

    def more(self, text: str) -> None:
        self._cursor.beginEditBlock()
        self._append(visible(text))
        self._cursor.endEditBlock()

    # --- stream.Sheet ---------------------------------------------------------------

    def begin(self) -> None:
        self._cursor.beginEditBlock()
        if self._closed_place.table:
            self._closed_place.table.take_back()
        self._cursor.setPosition(self._closed_end)
        last = self._cursor.blockFormat()
        self._cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        if self._cursor.hasSelection():
            self._cursor.removeSelectedText()
            # Where the last closed block is empty, Qt gives it the format of the removed one.
            fresh = self._closed_place.fresh
            self._cursor.setBlockFormat(QTextBlockFormat() if fresh else last)
        self._place = self._closed_place.copy()
        self._decorations = list(self._closed)
        self._provisional = False

    def tail(self) -> None:
        self._write_code()
        self._reach()
        self._closed_end = self._cursor.position()
        self._closed_place = self._place.copy()
        self._closed = list(self._decorations)
        self._provisional = True

    def end(self) -> None:
        self._write_code()
        self._reach()
        self._cursor.endEditBlock()

    # --- blocks.Page ----------------------------------------------------------------

    def quote(self) -> None:
        self._write_code()
        self._write_markers()
        self._place.frames.append(_Frame())

    def item(self, number: int | None, mark: str, *, loose: bool) -> None:
        self._write_code()
        self._write_markers()
        self._place.frames.append(_Frame(item=(number, mark, loose), marked=False))

    def leave(self) -> None:
        self._write_code()
        self._write_markers()  # of an item without text
        self._reach()
        self._place.frames.pop()

    def text(self, kind: str, source: str, *, after: str | None) -> None:
        self._write_code()
        kind, _, label = kind.partition(":")
        chars = formats.chars(kind)
        if after is not None:
            shape = self._indented(formats.paragraph())
            if not after:
                shape.setProperty(Mark.CONTINUES, True)
            self._new_block(self._place.last, shape, chars)
        elif self._place.frames and not self._place.frames[-1].marked:
            source = self._begin_item(kind, source)
        elif kind in ("p", "note"):
            shape = self._indented(formats.paragraph(self._gap(kind)))
            if label:
                shape.setProperty(Mark.NOTE, True)
            self._new_block(kind, shape, chars)
        else:
            shape = formats.heading(int(kind[1]), self._gap(kind))
            self._new_block(kind, self._indented(shape), chars)
        if label and after is None:
            self._cursor.insertText(label, formats.footnote(chars))
            self._cursor.insertText(" ", chars)
        runs.write(self._cursor, inline.parse(source, names=self.names), chars)
        self._turn()

    def rule(self) -> None:
        self._write_code()
        self._write_markers()
        shape = self._indented(formats.rule(self._gap("rule")))
        self._new_block("rule", shape, formats.chars())
        here = self._cursor.position()
        left = self._left(self._place.frames)
        self._decorations.append(Decoration(Kind.RULE, here, here, left))

    def code(self, language: str) -> None:
        self._write_code()
        self._write_markers()
        place, left = self._place, self._left(self._place.frames)
        place.shape = self._indented(formats.code_line(language))
        place.chars = formats.code_chars()
        top = self._gap("code") + CODE_HEADER
        self._new_block("code", self._indented(formats.code_line(language, top)), place.chars)
        here = self._cursor.position()
        place.code, place.begun, place.column = len(self._decorations), False, 0
        code = Decoration(Kind.CODE, here, here, left, language, open=True)
        self._decorations.append(code)

    def code_line(self, text: str) -> None:
        self._code.append("\n" + text if self._place.begun else text)
        self._place.begun = True

    def code_more(self, text: str) -> None:
        self._code.append(text)

    def end_code(self) -> None:
        self._write_code()
        if self._place.code is not None:
            code = self._decorations[self._place.code]
            self._decorations[self._place.code] = replace(code, open=False)
        self._place.code = None

    def formula(self, source: str) -> None:
        self.text("p", source, after=None)
        shape = self._cursor.blockFormat()
        shape.setProperty(Mark.ALONE, True)
        if self._cursor.currentList() is None:  # else it begins an item
            shape.setLeftMargin(shape.leftMargin() + Space.XL)
        self._cursor.setBlockFormat(shape)
        here, left = self._cursor.position(), self._left(self._place.frames)
        self._decorations.append(Decoration(Kind.FORMULA, here, here, left))

    def table(self, header: Sequence[str], align: Sequence[str]) -> None:
        self._write_code()
        self._write_markers()
        shape = self._indented(formats.seam(self._gap("table")))
        self._new_block("table", shape, formats.chars())
        table = self._place.table = Table.make(self._cursor, header, align, shape, self.names)
        lined = len(align) > WIDE
        if lined:
            self._place.last = "wide"
        here, left = self._cursor.position(), self._left(self._place.frames)
        self._place.table_at = len(self._decorations)
        kind = Kind.WIDE if lined else Kind.GRID
        self._decorations.append(Decoration(kind, table.start, here, left, open=True))

    def row(self, cells: Sequence[str]) -> None:
        if self._place.table:
            self._place.table.add(cells, provisional=self._provisional)

    def end_table(self) -> None:
        self._reach()
        if self._place.table_at is not None:
            table = self._decorations[self._place.table_at]
            self._decorations[self._place.table_at] = replace(table, open=False)
        self._place.table = self._place.table_at = None

    # --- own ------------------------------------------------------------------------

    def _new_block(self, kind: str, block: QTextBlockFormat, chars: QTextCharFormat) -> None:
        if self._place.fresh:
            self._set_top(block.topMargin())
            self._cursor.setBlockFormat(block)
            self._cursor.setBlockCharFormat(chars)
            self._cursor.setCharFormat(chars)
            self._place.fresh = False
        else:
            self._cursor.insertBlock(block, chars)
        self._place.last, self._place.depth = kind, self._place.items
        here = self._cursor.position()
        for i, frame in enumerate(self._place.frames):
            if frame.item is None and frame.decoration is None and i < DEEPEST:
                frame.decoration = len(self._decorations)
                left = self._left(self._place.frames[:i])
                self._decorations.append(Decoration(Kind.QUOTE, here, here, left))

    def _set_top(self, margin: float) -> None:
        """Room above the first block, whose own top margin Qt ignores."""
        root = self.document.rootFrame()
        look = root.frameFormat()
        if look.topMargin() != margin:
            look.setTopMargin(margin)
            root.setFrameFormat(look)

    def _gap(self, kind: str) -> float:
        """Room above a block of `kind`, after the one before it."""
        last, items = self._place.last, self._place.items
        # The ground of code reaches below its text, and so does the bar of a wide table.
        below = Space.M if last in ("code", "wide") else 0
        if not last:
            gap = 0
        elif kind == "item":
            frame = self._place.frames[-1]
            loose = frame.item is not None and frame.item[2]
            if last != "item" or loose:
                gap = Space.S
            else:
                gap = 6 if items < self._place.depth else 2
        elif last[0] == "h":
            gap = Space.S
        elif kind[0] == "h":
            gap = Space.XL if kind in ("h1", "h2") else Space.L
        elif items and last == "item":
            gap = 6
        elif kind == last == "note":
            gap = 2
        elif kind == "rule" or last == "rule":
            gap = Space.L
        else:
            gap = Space.M
        return gap + below

    def _begin_item(self, kind: str, source: str) -> str:
        """Begin the innermost item with its text; the rest of which is given back."""
        self._write_markers(but_last=True)
        frame = self._place.frames[-1]
        task = _TASKS.get(source[:4]) if kind == "p" else None
        self._mark(frame, kind, task)
        return source[4:] if task else source

    def _write_markers(self, *, but_last: bool = False) -> None:
        """An item that begins with something else than text has its marker on a line."""
        frames = self._place.frames
        for i, frame in enumerate(frames[:-1] if but_last else frames):
            if not frame.marked:
                inner, self._place.frames = frames, frames[: i + 1]
                self._mark(frame, "p")
                self._place.frames = inner

    def _mark(
        self, frame: _Frame, kind: str, task: QTextBlockFormat.MarkerType | None = None
    ) -> None:
        assert frame.item
        number, mark, _ = frame.item
        shape = formats.paragraph(self._gap("item"))
        if kind[0] == "h":
            shape.setHeadingLevel(int(kind[1]))
        if task:
            shape.setMarker(task)
        shape = self._indented(shape)
        shape.setIndent(0)  # the list's own indent counts
        if number is not None:  # a long or a large one needs more room than a level has
            more = formats.number_room(f"{number}{mark}", kind) - formats.indent()
            shape.setLeftMargin(shape.leftMargin() + max(0.0, more))
        self._new_block("item", shape, formats.chars(kind))
        # Each item is a list of its own: it can be told before the next one comes.
        depth = max(1, _levels(self._place.frames)[1])
        self._cursor.createList(formats.marker(number, mark, depth))
        frame.marked = True

    def _indented(self, block: QTextBlockFormat) -> QTextBlockFormat:
        quotes, items = _levels(self._place.frames)
        block.setLeftMargin(block.leftMargin() + quotes * Space.L)
        block.setIndent(items)
        if self._place.quotes:
            block.setProperty(Mark.QUOTES, self._place.quotes)
        return block

    def _left(self, frames: Sequence[_Frame]) -> float:
        quotes, items = _levels(frames)
        return items * formats.indent() + quotes * Space.L

    def _turn(self) -> None:
        """What stands before a text from right to left, a quote's bar or a long number, is at its
        right."""
        block = self._cursor.block()
        if (
            block.blockFormat().leftMargin()
            and block.textDirection() == Qt.LayoutDirection.RightToLeft
        ):
            shape = block.blockFormat()
            shape.setRightMargin(shape.leftMargin())
            shape.setLeftMargin(0)
            self._cursor.setBlockFormat(shape)

    def _reach(self) -> None:
        """Quotes that are open reach to the end of the page, and so does a table."""
        here = self._cursor.position()
        if self._place.table_at is not None:
            table = self._decorations[self._place.table_at]
            self._decorations[self._place.table_at] = replace(table, end=here)
        for frame in self._place.frames:
            if frame.decoration is not None:
                quote = self._decorations[frame.decoration]
                self._decorations[frame.decoration] = replace(quote, end=here)

    def _write_code(self) -> None:
        if not self._code or self._place.code is None:
            return
        self._append("".join(self._code))
        self._code.clear()
        code = self._decorations[self._place.code]
        self._decorations[self._place.code] = replace(code, end=self._cursor.position())

    def _append(self, text: str) -> None:
        """Insert lines, long ones in chunks."""
        place = self._place
        first, newline, rest = text.partition("\n")
        self._line(first)
        if not newline:
            return
        self._cursor.insertBlock(place.shape, place.chars)
        place.column = 0
        if max(map(len, rest.split("\n"))) < CHUNK:
            self._cursor.insertText(rest, place.chars)
            place.column = len(rest) - rest.rfind("\n") - 1
            return
        for i, line in enumerate(rest.split("\n")):
            if i:
                self._cursor.insertBlock(place.shape, place.chars)
                place.column = 0
            self._line(line)

    def _line(self, text: str) -> None:
        place = self._place
        while len(text) > (room := CHUNK - place.column):
            self._cursor.insertText(text[:room], place.chars)
            continued = QTextBlockFormat(place.shape)
            continued.setProperty(Mark.CONTINUES, True)
            self._cursor.insertBlock(continued, place.chars)
            place.column, text = 0, text[room:]
        self._cursor.insertText(text, place.chars)
        place.column += len(text)


def _levels(frames: Sequence[_Frame]) -> tuple[int, int]:
    """Quotes and items that a block in `frames` is indented by."""
    items = sum(frame.item is not None for frame in frames[:DEEPEST])
    return min(len(frames), DEEPEST) - items, items


def code_blocks(document: QTextDocument, code: Decoration) -> Iterator[QTextBlock]:
    block = document.findBlock(code.start)
    while block.isValid() and block.position() <= code.end:
        yield block
        block = block.next()
