"""Markdown's blocks, one line after the other.

CommonMark is defined line by line (its appendix "A parsing strategy"): open containers, one
open leaf, and a next line that goes on with them or closes them. What this machine holds
after a line depends on the lines alone and never on how they arrived, so a text that streams
in ends as the text that is parsed whole. The page is told of each thing once: when it can
change no more. Only a paragraph waits for its end, for it may yet become a heading or the
head of a table; one longer than `SEGMENT` is told in parts.

Told as text, because a model's text is data and no character of it may vanish: raw HTML,
reference definitions, an open `$$` that does not end before the next empty line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from app.ui.markdown.inline import LABEL

SEGMENT: Final = 3_000
"""Characters of one paragraph that are told together."""

_HEADING: Final = re.compile(r"(#{1,6})([ \t].*)?")
_HEADING_END: Final = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_UNDERLINE: Final = re.compile(r"(=+|-+)[ \t]*")
_RULE: Final = re.compile(r"(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,}")
_FENCE: Final = re.compile(r"(`{3,})([^`]*)|(~{3,})(.*)")
_ITEM: Final = re.compile(r"([*+-])(?=[ \t]|$)|(\d{1,9})([.)])(?=[ \t]|$)")
_NOTE: Final = re.compile(rf"\[\^({LABEL})\]:[ \t]*")
_FORMULA: Final = re.compile(r"\$\$|\\\[")
_DELIMITERS: Final = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_WHOLE: Final = re.compile(
    r"(?<!`)(`+)(?!`).{0,300}?[^`]\1(?!`)"
    r"|\$(?=\S)[^$]{0,300}?(?<=\S)\$(?!\d)"
    r"|\\\(.{0,300}?\\\)"
)
"""Code and formulas in the row of a table, of a length that a look through it stays short."""

_PIPE: Final = re.compile(r"(?<!\\)\|")
_TAB: Final = 4


class Page(Protocol):
    """Where blocks go, in their order."""

    def quote(self) -> None:
        """A quote begins."""

    def item(self, number: int | None, mark: str, *, loose: bool) -> None:
        """An item of a list begins; `mark` is its bullet, or what follows its number.

        `loose`: an empty line parts it from what is before.
        """

    def leave(self) -> None:
        """The innermost quote or item ends."""

    def text(self, kind: str, source: str, *, after: str | None) -> None:
        """A paragraph `p`, a heading `h1` … `h6` or a footnote `note:LABEL`.

        `after` is None at its beginning, and otherwise what stands between this part and
        the one before: a newline or nothing.
        """

    def rule(self) -> None: ...

    def code(self, language: str) -> None:
        """Code begins."""

    def code_line(self, text: str) -> None: ...

    def code_more(self, text: str) -> None:
        """More of the last line."""

    def end_code(self) -> None: ...

    def formula(self, source: str) -> None:
        """A formula that stands alone, with the signs around it."""

    def table(self, header: Sequence[str], align: Sequence[str]) -> None:
        """A table begins; of each column `left`, `right`, `center` or nothing."""

    def row(self, cells: Sequence[str]) -> None: ...

    def end_table(self) -> None: ...


@dataclass(slots=True)
class Quote:
    pass


@dataclass(slots=True)
class Items:
    """A list: it holds items, and is never told."""

    mark: str
    next: int | None


@dataclass(slots=True)
class Item:
    indent: int
    empty: bool = True


@dataclass(slots=True)
class Paragraph:
    kind: str
    source: str
    after: str | None = None  # what stands before `source`, None where nothing was told
    torn: bool = False  # the first line of `source` has begun in a part told before


@dataclass(slots=True)
class Fence:
    mark: str
    indent: int


@dataclass(slots=True)
class Indented:
    blanks: tuple[str, ...] = ()


@dataclass(slots=True)
class Formula:
    end: str
    source: str


@dataclass(slots=True)
class Table:
    columns: int


Container = Quote | Items | Item
Leaf = Paragraph | Fence | Indented | Formula | Table


class Blocks:
    """The containers and the leaf that are open after the lines so far."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._open: list[Container] = []
        self._leaf: Leaf | None = None
        self._blank = False  # the line before was empty

    def copy(self) -> Blocks:
        """The same state, for a look at what an unfinished line would do."""
        result = Blocks(self._page)
        result._open = [replace(container) for container in self._open]
        result._leaf = self._leaf and replace(self._leaf)
        result._blank = self._blank
        return result

    @property
    def in_table(self) -> bool:
        return isinstance(self._leaf, Table)

    def line(self, text: str, *, goes_on: bool = False) -> None:
        """The next line, without its newline.

        Where it `goes_on`, `more` follows, and it is nothing but text of a paragraph or of
        code, whatever it looks like: the other blocks are known by their whole line only.
        """
        line = _Line(text, goes_on)
        depth = self._matching(line)
        whole = depth == len(self._open)
        if whole and self._goes_on(line, goes_on):
            self._blank = line.blank
            return
        if not whole and not isinstance(self._leaf, Paragraph):
            self._close_to(depth)
            whole = True
        self._begin(line, depth, whole, goes_on)
        self._blank = line.blank

    def more(self, text: str) -> None:
        """More of the line that goes on."""
        if isinstance(self._leaf, Paragraph):
            self._leaf.source += text
            self._tell_parts(self._leaf)
        else:
            self._page.code_more(text)

    def peek(self) -> None:
        """Tell the open paragraph as it stands; what may become a table waits."""
        leaf = self._leaf
        if isinstance(leaf, Paragraph):
            *lines, last = leaf.source.split("\n")
            shown = "\n".join(lines) if last.startswith("|") else leaf.source
            if shown:
                self._page.text(leaf.kind, shown, after=leaf.after)
        elif isinstance(leaf, Formula):
            self._page.text("p", leaf.source, after=None)

    def close(self) -> None:
        """No more lines come."""
        self._close_to(0)

    # --- what goes on -----------------------------------------------------------

    def _matching(self, line: _Line) -> int:
        """How many of the open containers this line is in; their signs are taken off it."""
        for depth, container in enumerate(self._open):
            match container:
                case Quote():
                    if not line.take_quote():
                        return depth
                case Item(indent, empty):
                    if line.blank and empty:
                        return depth
                    if not line.blank and line.indent < indent:
                        return depth
                    line.take(indent)
        return len(self._open)

    def _goes_on(self, line: _Line, goes_on: bool) -> bool:
        """Whether the leaf alone decides what this line is."""
        match self._leaf:
            case Fence(mark, indent):
                bare = line.text.strip(" \t")
                ends = line.indent < _TAB and len(bare) >= len(mark)
                if ends and not goes_on and set(bare) == {mark[0]}:
                    self._close_leaf()
                else:
                    line.take(min(indent, line.indent))
                    self._page.code_line(line.text)
                return True
            case Indented(blanks) as leaf:
                if line.blank:
                    line.take(_TAB)
                    leaf.blanks = (*blanks, line.text)
                    return True
                if line.indent >= _TAB:
                    line.take(_TAB)
                    for blank in blanks:
                        self._page.code_line(blank)
                    leaf.blanks = ()
                    self._page.code_line(line.text)
                    return True
            case Formula(end, source) as leaf:
                if line.blank or goes_on or len(source) > SEGMENT:
                    self._leaf = Paragraph("p", source)  # no formula after all
                    return False
                leaf.source += "\n" + line.text.strip(" \t")
                if leaf.source.endswith(end):
                    self._page.formula(leaf.source)
                    self._leaf = None
                return True
        return False

    # --- what begins ------------------------------------------------------------

    def _begin(self, line: _Line, depth: int, whole: bool, goes_on: bool) -> None:
        """Begin what this line begins, or go on with the open paragraph.

        `depth` containers go on; the others end as soon as something begins.
        """
        paragraph = self._leaf if isinstance(self._leaf, Paragraph) else None
        while not line.blank:
            if line.indent >= _TAB:
                if paragraph:
                    break
                self._start(depth, Indented())
                self._page.code("")
                line.take(_TAB)
                self._page.code_line(line.text)
                return
            here = paragraph if whole else None
            text = line.text.lstrip(" \t")
            if text[:1] == ">":
                self._start(depth, None)
                self._open.append(Quote())
                self._page.quote()
                line.take_quote()
            elif not goes_on and self._leaf_begins(text, line.indent, depth, here):
                return
            elif (item := _ITEM.match(text)) and _may_interrupt(item, text, here):
                self._start_item(line, item, depth)
            else:
                break
            depth, whole, paragraph = len(self._open), True, None
        if line.blank:
            self._close_to(depth)
        elif isinstance(self._leaf, Table) and not goes_on:
            self._page.row(_cells(line.text.strip(" \t"), self._leaf.columns))
        else:
            self._add_text(line.text.lstrip(" \t"), depth, paragraph)

    def _leaf_begins(self, text: str, indent: int, depth: int, here: Paragraph | None) -> bool:
        """Whether the whole line is a leaf of its own, or makes one of the paragraph `here`."""
        if here and self._table_begins(text, here):
            return True
        if here and here.after is None and here.kind == "p" and _UNDERLINE.fullmatch(text):
            here.kind = "h1" if text[0] == "=" else "h2"
            self._close_leaf()
        elif heading := _HEADING.fullmatch(text):
            self._start(depth, None)
            source = _HEADING_END.sub("", (heading[2] or "").strip(" \t"))
            self._page.text(f"h{len(heading[1])}", source, after=None)
        elif _RULE.fullmatch(text):
            self._start(depth, None)
            self._page.rule()
        elif fence := _FENCE.fullmatch(text):
            self._start(depth, Fence(fence[1] or fence[3], indent))
            self._page.code((fence[2] or fence[4] or "").strip())
        elif formula := _FORMULA.match(text):
            return self._formula_begins(text.rstrip(" \t"), formula[0], depth)
        else:
            return False
        return True

    def _formula_begins(self, text: str, sign: str, depth: int) -> bool:
        end = "$$" if sign == "$$" else "\\]"
        at = text.find(end, 2)
        if at >= 0 and at + 2 < len(text):
            return False  # it ends within the line: what follows is a paragraph's text
        self._start(depth, Formula(end, text) if at < 0 else None)
        if at >= 0:
            self._page.formula(text)
        return True

    def _table_begins(self, text: str, here: Paragraph) -> bool:
        """Whether this line makes the paragraph's last one the head of a table."""
        if not _DELIMITERS.fullmatch(text) or (text[0] == "-" and text[1:2] in " \t"):
            return False
        before, newline, head = here.source.rpartition("\n")
        if "|" not in head or (here.torn and not newline):
            return False
        marks = _split(text)
        header = _split(head, len(marks))
        if len(marks) != len(header):
            return False
        if before:
            self._page.text(here.kind, before, after=here.after)
        sides = {(True, True): "center", (True, False): "left", (False, True): "right"}
        self._page.table(header, [sides.get((m[0] == ":", m[-1] == ":"), "") for m in marks])
        self._leaf = Table(len(header))
        return True

    def _start_item(self, line: _Line, item: re.Match[str], depth: int) -> None:
        self._close_to(depth)
        mark = item[1] or item[3]
        items = self._open[-1] if self._open else None
        again = isinstance(items, Items) and items.mark == mark
        if not again:
            self._start(depth, None)
            self._open.append(items := Items(mark, int(item[2]) if item[2] else None))
        assert isinstance(items, Items)
        outside = line.indent
        line.take(outside + len(item[0]))
        inside = line.indent
        inside = 1 if line.blank or inside > _TAB else inside
        line.take(inside)
        self._open.append(Item(outside + len(item[0]) + inside))
        self._page.item(items.next, mark, loose=self._blank)
        items.next = None if items.next is None else items.next + 1

    def _add_text(self, text: str, depth: int, paragraph: Paragraph | None) -> None:
        if note := _NOTE.match(text):
            paragraph = Paragraph(f"note:{note[1]}", text[note.end() :])
            self._start(depth, paragraph)
        elif paragraph:
            paragraph.source += "\n" + text
        else:
            paragraph = Paragraph("p", text)
            self._start(depth, paragraph)
        self._tell_parts(paragraph)

    def _start(self, depth: int, leaf: Leaf | None) -> None:
        """`leaf`, or nothing yet, begins in the first `depth` of the containers."""
        self._close_to(depth)
        if self._open and isinstance(self._open[-1], Items):
            self._open.pop()
        if self._open and isinstance(self._open[-1], Item):
            self._open[-1].empty = False
        self._leaf = leaf

    # --- what ends --------------------------------------------------------------

    def _close_to(self, depth: int) -> None:
        self._close_leaf()
        while len(self._open) > depth:
            if not isinstance(self._open.pop(), Items):
                self._page.leave()

    def _close_leaf(self) -> None:
        match self._leaf:
            case Paragraph(kind, source, after):
                self._page.text(kind, source.rstrip(" \t"), after=after)
            case Formula(_, source):
                self._page.text("p", source, after=None)
            case Fence() | Indented():
                self._page.end_code()
            case Table():
                self._page.end_table()
        self._leaf = None

    def _tell_parts(self, leaf: Paragraph) -> None:
        """Tell what is too long to wait. Where it is cut depends on nothing but itself."""
        while len(leaf.source) > SEGMENT:
            end = _seam(leaf.source)
            newline = leaf.source[end] == "\n"
            self._page.text(leaf.kind, leaf.source[:end], after=leaf.after)
            leaf.source = leaf.source[end + newline :]
            leaf.after, leaf.torn = "\n" if newline else "", not newline


class _Line:
    """What is left of a line, and the column where that begins, which tabs depend on."""

    __slots__ = ("_goes_on", "column", "text")

    def __init__(self, text: str, goes_on: bool) -> None:
        self.text = text
        self.column = 0
        self._goes_on = goes_on

    @property
    def blank(self) -> bool:
        return not self._goes_on and not self.text.strip(" \t")

    @property
    def indent(self) -> int:
        """Columns of white space at the beginning."""
        column = self.column
        for sign in self.text:
            if sign == " ":
                column += 1
            elif sign == "\t":
                column += _TAB - column % _TAB
            else:
                break
        return column - self.column

    def take(self, columns: int) -> None:
        """Take off signs, and white space by columns: a part of a tab is spaces."""
        at = 0
        while columns > 0 and at < len(self.text):
            width = _TAB - self.column % _TAB if self.text[at] == "\t" else 1
            at += 1
            self.column += min(width, columns)
            if width > columns:
                self.text = " " * (width - columns) + self.text[at:]
                return
            columns -= width
        self.text = self.text[at:]

    def take_quote(self) -> bool:
        if self.indent >= _TAB or self.text.lstrip(" \t")[:1] != ">":
            return False
        self.take(self.indent + 1)
        if self.text[:1] in (" ", "\t"):
            self.take(1)
        return True


def _may_interrupt(item: re.Match[str], text: str, here: Paragraph | None) -> bool:
    """A paragraph is ended only by an item with text, and by a number only if it is 1."""
    return not here or bool(text[item.end() :].strip(" \t") and (item[1] or int(item[2]) == 1))


def _split(row: str, columns: int = 0) -> list[str]:
    """The cells of `row`. A pipe in code or in a formula is a sign of it where there would be
    more than `columns` otherwise and are as many then: models forget to escape it."""
    cells = _parted(row)
    if 0 < columns < len(cells):
        kept = _parted(_WHOLE.sub(lambda part: _PIPE.sub(r"\|", part[0]), row))
        cells = kept if len(kept) == columns else cells
    return cells


def _parted(row: str) -> list[str]:
    from markdown_it.rules_block.table import escapedSplit

    cells = [cell.strip() for cell in escapedSplit(row.strip(" \t"))]
    if cells and not cells[0]:
        del cells[0]
    if cells and not cells[-1]:
        del cells[-1]
    return cells


def _cells(row: str, columns: int) -> list[str]:
    """As many as there are columns: what is too much stays in the last."""
    cells = _split(row, columns)
    while len(cells) > columns and not cells[-1]:
        del cells[-1]
    last = [" | ".join(cells[columns - 1 :])] if len(cells) > columns else cells[columns - 1 :]
    return [*cells[: columns - 1], *last] + [""] * (columns - len(cells))


def _seam(source: str) -> int:
    """Where the text of a long paragraph is cut: best between lines, and not in a span."""
    found = 0
    for place in ("\n", ". ", " "):
        end = SEGMENT
        while (end := source.rfind(place, SEGMENT // 2, end)) >= 0:
            part = source[:end]
            if all(part.count(sign) % 2 == 0 for sign in ("`", "**", "$")):
                return end + len(place) - (place == "\n")
            found = found or end + len(place) - (place == "\n")
    return found or SEGMENT
