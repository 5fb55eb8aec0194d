"""Markdown that arrives in pieces: what is closed is told once, the rest is the tail.

The model's text is data. Raw HTML stays text, and so do the constructs that would let
characters vanish: `<autolinks>` (of which `<std::string>` is one), entities and
reference definitions. A block is closed when the next one has begun on a complete
line; the items of a list close one by one. An open fence is handed on as plain text
without being parsed again, and so is a block that grows beyond `LIMIT`, which keeps
the cost of a piece independent of the answer's length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto
from itertools import accumulate
from typing import Final, Protocol

from markdown_it import MarkdownIt
from markdown_it.token import Token

LIMIT: Final = 8_000
"""Characters of one block up to which it is parsed again for every piece."""

_CLOSED_RULES: Final = ["autolink", "html_inline", "html_block", "entity", "reference"]
_BLANK_LINE: Final = re.compile(r"\n[ \t]*\n")
_MAYBE_BLANK: Final = re.compile(r"\n[ \t]*\Z")


class Sink(Protocol):
    """Where blocks go. A block that is told replaces the tail told before."""

    def block(self, tokens: Sequence[Token], number: int) -> None:
        """A closed block. `number`, if not 0, is that of its first list item."""

    def tail(self, tokens: Sequence[Token], number: int) -> None: ...

    def open_code(self, language: str) -> None: ...

    def open_plain(self) -> None: ...

    def more(self, text: str) -> None:
        """Text of the open code or plain block."""

    def close(self) -> None:
        """The open code or plain block ends."""


class _Mode(Enum):
    PARSED = auto()
    CODE = auto()
    PLAIN = auto()


def parser() -> MarkdownIt:
    result = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # Without `text_join` an escaped character keeps its backslash beside it.
    return result.disable([*_CLOSED_RULES, "text_join"])


class MarkdownStream:
    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._parser = parser()
        self._pending = ""
        self._mode = _Mode.PARSED
        self._number = 0  # of the first item of the list that goes on, else 0
        self._fence = re.compile("")  # what closes the open fence
        self._fence_indent = 0
        self._line_over = False  # a line of the fence was told, its newline not yet
        self._in_line = False  # a part of this line was told

    def feed(self, text: str) -> None:
        self._pending += text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
        steps = {_Mode.PARSED: self._parse, _Mode.CODE: self._code, _Mode.PLAIN: self._plain}
        while self._pending and steps[self._mode]():
            pass

    def finish(self) -> None:
        """No more text comes: the tail is closed as it is."""
        if self._mode is _Mode.PARSED:
            self._blocks(self._groups())
        else:
            last = self._pending
            if self._mode is _Mode.CODE:
                last = "" if not last or self._fence.fullmatch(last) else self._line(last)
            self._sink.more(last)
            self._sink.close()
        self._pending, self._mode, self._number = "", _Mode.PARSED, 0

    # Each step works on what is pending and tells whether another can follow.

    def _parse(self) -> bool:
        groups = self._groups()
        if not groups:
            return False
        starts = list(accumulate((len(t) + 1 for t in self._pending.split("\n")), initial=0))
        start = starts[_first_line(groups[-1])]
        settled = self._is_settled(start)
        open_groups = groups[-1:] if settled else groups[-2:]
        closed = groups[: -len(open_groups)]
        first = open_groups[0]
        cut = _first_line(first) if closed else 0
        self._blocks(closed)
        if settled and first[0].type in ("bullet_list_open", "ordered_list_open"):
            items = [i for i, t in enumerate(first) if t.type == "list_item_open" and t.level == 1]
            if len(items) > 1:
                self._sink.block([*first[: items[-1]], first[-1]], self._number)
                self._number = (self._number or list_start(first[0])) + len(items) - 1
                cut = _first_line(first[items[-1] :])
        if cut:
            self._pending = self._pending[starts[cut] :]
            return True
        if first[0].type == "fence" and self._enter_fence(first[0]):
            return True
        if len(self._pending) > LIMIT:
            self._sink.open_plain()
            self._mode = _Mode.PLAIN
            return True
        self._sink.tail([token for group in open_groups for token in group], self._number)
        return False

    def _is_settled(self, start: int) -> bool:
        """Whether no further text can join the block at `start` to the one before.

        So it is when its first line is complete, or too long for a list marker
        after an empty line.
        """
        line, newline, _ = self._pending[start:].partition("\n")
        return bool(newline) or (len(line) > 11 and self._pending[:start].endswith("\n\n"))

    def _groups(self) -> list[list[Token]]:
        """The top-level blocks of what is pending, each as its tokens."""
        groups: list[list[Token]] = []
        for token in self._parser.parse(self._pending):
            if token.level == 0 and token.nesting >= 0:
                groups.append([])
            groups[-1].append(token)
        return groups

    def _blocks(self, groups: list[list[Token]]) -> None:
        for group in groups:
            self._sink.block(group, self._number)
            self._number = 0

    def _enter_fence(self, fence: Token) -> bool:
        first, newline, rest = self._pending.lstrip("\n").partition("\n")
        mark = re.escape(fence.markup[0])
        self._fence = re.compile(rf" {{0,3}}{mark}{{{len(fence.markup)},}}[ \t]*")
        if not newline or any(self._fence.fullmatch(line) for line in rest.split("\n")[:-1]):
            return False
        self._fence_indent = len(first) - len(first.lstrip(" "))
        self._line_over = self._in_line = False
        self._pending = rest
        self._mode = _Mode.CODE
        self._sink.open_code(fence.info.strip())
        return True

    def _code(self) -> bool:
        *lines, last = self._pending.split("\n")
        code = ""
        for i, line in enumerate(lines):
            if not self._in_line and self._fence.fullmatch(line):
                self._pending = "\n".join([*lines[i + 1 :], last])
                self._mode = _Mode.PARSED
                self._sink.more(code)
                self._sink.close()
                return True
            code += self._line(line)
            self._line_over, self._in_line = True, False
        could_close = not self._in_line and not last.strip(" \t`~")
        if last and not could_close:
            code += self._line(last)
            self._in_line, last = True, ""
        self._pending = last
        self._sink.more(code)
        return False

    def _line(self, text: str) -> str:
        """`text` of a fence's line, with the newline before it that is due."""
        if self._in_line:
            return text
        indent = min(self._fence_indent, len(text) - len(text.lstrip(" ")))
        return "\n" * self._line_over + text[indent:]

    def _plain(self) -> bool:
        if blank := _BLANK_LINE.search(self._pending):
            self._sink.more(self._pending[: blank.start()])
            self._sink.close()
            self._pending, self._mode = self._pending[blank.end() :], _Mode.PARSED
            return True
        keep = _MAYBE_BLANK.search(self._pending)
        end = keep.start() if keep else len(self._pending)
        self._sink.more(self._pending[:end])
        self._pending = self._pending[end:]
        return False


def list_start(token: Token) -> int:
    start = token.attrGet("start")
    return 1 if start is None else int(start)


def _first_line(tokens: Sequence[Token]) -> int:
    return (tokens[0].map or [0])[0]
