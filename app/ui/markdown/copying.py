"""A part of a document as text: as it is seen, or as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, zip_longest

from PySide6.QtGui import QTextBlock, QTextCharFormat, QTextCursor, QTextDocument

from app.ui.markdown.formats import EDGE, Mark
from app.ui.markdown.formula import SIGN
from app.ui.markdown.runs import LINE_SEPARATOR

_SIDES = {"": "---", "left": ":--", "right": "--:", "center": ":-:"}
_LEVELS = ((Mark.STRONG, "**"), (Mark.EMPHASIS, "*"), (Mark.STRIKE, "~~"))

Run = tuple[str, QTextCharFormat]


def plain_text(document: QTextDocument, start: int, end: int) -> str:
    """The text between two positions as it is seen, without any markup."""
    parts: list[str] = []
    for block in _blocks(document, start, end):
        if parts and not block.blockFormat().property(Mark.CONTINUES):
            parts.append("\n")
        at, text = block.position(), block.text()
        if SIGN in text:
            text = "".join(text for text, _ in _runs(block, start, end))
        else:
            text = utf16_slice(text, max(0, start - at), end - at)
        parts.append(text.replace(LINE_SEPARATOR, "\n"))
    return "".join(parts)


def markdown(document: QTextDocument, start: int, end: int) -> str:
    """The same as Markdown; a part of one line of one look, or of one code, as it is seen."""
    first, last = document.findBlock(start), document.findBlock(end)
    code = all(b.blockFormat().hasProperty(Mark.CODE) for b in (first, last))
    if code and not any(_begins_code(b) for b in _blocks(document, first.next().position(), end)):
        return plain_text(document, start, end)
    marked = first.textList() and start == first.position()
    looks = {_look(look) for _, look in _runs(first, start, end)}
    if first == last and len(looks) <= 1 and not marked:
        return plain_text(document, start, end)
    return _Writer().write(document, start, end)


def difference(one: QTextDocument, other: QTextDocument) -> int | None:
    """The first position from which on two documents are seen to be different; None of none."""
    seen = zip_longest(_signs(one), _signs(other))
    return next((at for at, (a, b) in enumerate(seen) if a != b), None)


def utf16_length(text: str) -> int:
    """The length of `text` as Qt counts it."""
    return len(text) + sum(c > "\uffff" for c in text)


def utf16_slice(text: str, start: int, end: int) -> str:
    if text.isascii():
        return text[start:end]
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le", "replace")


class _Writer:
    def __init__(self) -> None:
        self._parts: list[str] = []
        self._widths: list[int] = []  # of the markers of the items that the text is in
        self._fence = ""  # the prefix of lines of the code that is open
        self._in_code = False
        self._quotes = 0  # that the block before is in
        self._rows = -1  # rows of the table that is open

    def write(self, document: QTextDocument, start: int, end: int) -> str:
        done = -1  # the last position of a table row that was written
        for block in _blocks(document, start, end):
            shape = block.blockFormat()
            if block.position() <= done or shape.hasProperty(Mark.SEAM):
                continue
            if self._in_code and (not shape.hasProperty(Mark.CODE) or _begins_code(block)):
                self._end_code()
            table = None
            if not shape.hasProperty(Mark.CODE):
                table = QTextCursor(block).currentTable()
            if table:
                row = table.cellAt(block.position()).row()
                cells = [table.cellAt(row, column) for column in range(table.columns())]
                done = cells[-1].lastPosition()
                if table.format().property(Mark.TURNED):
                    cells.reverse()
                texts = [self._cell(document, c.firstPosition(), c.lastPosition()) for c in cells]
                sides = [c.firstCursorPosition().blockFormat().alignment() for c in cells]
                self._row(texts, [_side(side.name or "") for side in sides], block)
            elif shape.hasProperty(Mark.WIDE_ROW):
                align = str(shape.property(Mark.WIDE_ROW)).split(",")
                line = "".join(text for text, _ in _runs(block, start, end))
                self._row([cell.strip() for cell in line.split(EDGE)], align, block)
            else:
                self._rows = -1
                self._block(block, start, end)
        if self._in_code:
            self._end_code()
        return "".join(self._parts)

    def _block(self, block: QTextBlock, start: int, end: int) -> None:
        shape = block.blockFormat()
        if shape.hasProperty(Mark.CODE):
            at = block.position()
            text = utf16_slice(block.text(), max(0, start - at), end - at)
            if not self._in_code:
                self._fence = self._separate(block)
                self._parts.append(f"```{shape.property(Mark.CODE) or ''}\n{self._fence}")
                self._in_code = True
            elif not shape.property(Mark.CONTINUES):
                self._parts.append(f"\n{self._fence}")
            self._parts.append(text)
            return
        prefix = self._separate(block)
        marker = self._marker(block) if block.position() >= start else ""
        if level := shape.headingLevel():
            marker += "#" * level + " "
        if shape.property(Mark.RULE):
            marker += "---"
        text = _inline(_runs(block, start, end))
        if shape.property(Mark.NOTE) and text.startswith("[^") and block.position() >= start:
            text = text.replace("] ", "]: ", 1)
        self._parts.append(marker + text.replace("\n", f"\n{prefix}{' ' * len(marker)}"))

    def _marker(self, block: QTextBlock) -> str:
        items = block.textList()
        if not items:
            return ""
        result = f"{items.format().property(Mark.NUMBER) or '-'} "
        depth = items.format().indent()
        self._widths = [*self._widths[: depth - 1], *[0] * (depth - 1 - len(self._widths))]
        self._widths.append(len(result))
        task = block.blockFormat().marker()
        if task is not task.NoMarker:
            result += "[x] " if task is task.Checked else "[ ] "
        return result

    def _separate(self, block: QTextBlock) -> str:
        """What stands between the blocks before and this one; the prefix of its lines."""
        shape, items = block.blockFormat(), block.textList()
        depth = items.format().indent() - 1 if items else shape.indent()
        del self._widths[depth:]
        quotes = int(shape.property(Mark.QUOTES) or 0)
        prefix = "> " * quotes + " " * sum(self._widths)
        if self._parts and not shape.property(Mark.CONTINUES):
            tight = shape.topMargin() == 0 or (items and shape.topMargin() <= 6)
            blank = ("> " * min(quotes, self._quotes)).rstrip()
            self._parts.append(f"\n{prefix}" if tight else f"\n{blank}\n{prefix}")
        elif not self._parts:
            self._parts.append(prefix)
        self._quotes = quotes
        return prefix

    def _end_code(self) -> None:
        self._parts.append(f"\n{self._fence}```")
        self._in_code = False

    def _cell(self, document: QTextDocument, start: int, end: int) -> str:
        text = _inline(_runs(document.findBlock(start), start, end))
        return text.replace("|", "\\|").replace("\n", "<br>")

    def _row(self, cells: list[str], align: list[str], block: QTextBlock) -> None:
        if self._rows < 0:
            if self._parts:
                self._parts.append("\n")
            self._rows = 0
        self._parts.append(("\n" if self._parts else "") + f"| {' | '.join(cells)} |")
        if self._rows == 0:
            self._parts.append(f"\n| {' | '.join(_SIDES[side] for side in align)} |")
        self._rows += 1


def _blocks(document: QTextDocument, start: int, end: int) -> Iterator[QTextBlock]:
    block = document.findBlock(start)
    while block.isValid() and block.position() <= end:
        yield block
        block = block.next()


def _begins_code(block: QTextBlock) -> bool:
    shape = block.blockFormat()
    return shape.hasProperty(Mark.CODE) and shape.topMargin() > 0


def _runs(block: QTextBlock, start: int, end: int) -> Iterator[Run]:
    """The parts of a block between two positions, each of one look."""
    inside = block.begin()
    while not inside.atEnd():
        fragment = inside.fragment()
        at = fragment.position()
        text = utf16_slice(fragment.text(), max(0, start - at), max(0, end - at))
        if text:
            look = fragment.charFormat()
            if look.hasProperty(Mark.SOURCE):  # a formula, or the same again and again
                text = str(look.property(Mark.SOURCE)) * len(text)
            yield text, look
        inside += 1


def _signs(document: QTextDocument) -> Iterator[tuple[object, ...]]:
    """What is seen at each position: half of what a character beyond the first plane is, too."""
    for block in _blocks(document, 0, document.characterCount()):
        shape = block.blockFormat()
        items = block.textList()
        kind = (
            (shape.headingLevel(), shape.property(Mark.CODE), shape.property(Mark.QUOTES)),
            (shape.property(Mark.RULE), shape.property(Mark.NOTE), shape.marker(), shape.indent()),
            (items.format().property(Mark.NUMBER), items.format().indent()) if items else None,
        )
        inside = block.begin()
        while not inside.atEnd():
            fragment = inside.fragment()
            look = fragment.charFormat()
            told = (*_look(look), look.property(Mark.SOURCE))
            for sign in fragment.text():
                yield from [(sign, told)] * utf16_length(sign)
            inside += 1
        yield "\n", kind


def _look(look: QTextCharFormat) -> tuple[object, ...]:
    return (
        look.anchorHref() if look.isAnchor() else None,
        *(bool(look.property(mark)) for mark, _ in _LEVELS),
        look.property(Mark.RUN) or "",
    )


def _inline(runs: Iterator[Run]) -> str:
    result = ""
    for (address, *levels, kind), group in groupby(runs, lambda run: _look(run[1])):
        text = "".join(text for text, _ in group).replace(LINE_SEPARATOR, "\n")
        core = text.strip()
        if not core:
            result += text
            continue
        before, after = text[: text.index(core)], text[text.index(core) + len(core) :]
        match kind:
            case "code":
                fence = "``" if "`" in core else "`"
                core = f"{fence}{core}{fence}"
            case "note":
                core = f"[^{core}]"
            case "escaped":
                core = "".join(f"\\{sign}" for sign in core)
        for wanted, (_, sign) in zip(levels, _LEVELS, strict=True):
            core = f"{sign}{core}{sign}" if wanted else core
        if address is not None and address != core:
            core = f"[{core}]({address})"
        result += before + core + after
    return result


def _side(alignment: str) -> str:
    names = (("AlignRight", "right"), ("AlignHCenter", "center"))
    return next((side for name, side in names if name in alignment), "")
