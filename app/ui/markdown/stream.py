"""Markdown that arrives in pieces, as the same page that the whole text gives.

Lines go to `Blocks` as they are completed. What is unfinished is shown too: a copy of the
blocks takes it, and what that tells is taken back before the next piece. So what stays on
the page depends on the text alone, and a piece costs the open paragraph at most.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from app.ui.markdown.blocks import Blocks, Page
from app.ui.markdown.visible import visible

HEAD: Final = 2_000
"""Characters of a line from which on it is told before its end comes."""

ROW: Final = 64_000
"""The same for a line that may be a row of a table, which is known by its end."""

_UNDECIDED: Final = re.compile(r"[\s\d*+\-=_#~`|:.)>$\\\[\]^!<]*")
"""The beginning of a line that may still become one block or another."""

_ROW: Final = re.compile(r"[ \t>]*\|")


class Sheet(Page, Protocol):
    """A page whose end can be taken back."""

    def begin(self) -> None:
        """Take back what was told since `tail`."""

    def tail(self) -> None:
        """What follows is provisional."""

    def end(self) -> None:
        """Show what was told."""


class MarkdownStream:
    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._blocks = Blocks(sheet)
        self._pending = ""  # of the last line, what was not told
        self._in_line = False  # its head was told
        self._return = False  # a carriage return came last: a newline may belong to it

    def feed(self, text: str) -> None:
        self._sheet.begin()
        self._take(text)
        self._sheet.tail()
        self._preview()
        self._sheet.end()

    def finish(self) -> None:
        """No more text comes."""
        self._sheet.begin()
        if self._pending and not self._in_line:
            self._blocks.line(self._pending)
        self._blocks.close()
        self._sheet.tail()
        self._sheet.end()
        self._blocks, self._pending, self._in_line = Blocks(self._sheet), "", False

    def _take(self, text: str) -> None:
        if self._return and text:
            text = text.removeprefix("\n")
            self._return = False
        self._return = self._return or text.endswith("\r")
        *lines, last = (self._pending + visible(text.replace("\r\n", "\n"))).split("\n")
        for line in lines:
            rest = self._begin(line)
            if self._in_line:
                self._blocks.more(rest)
            else:
                self._blocks.line(rest)
            self._in_line = False
        self._pending = self._begin(last)
        if self._in_line:
            self._blocks.more(self._pending)
            self._pending = ""

    def _begin(self, line: str) -> str:
        """Tell the head of a line that is too long to wait, and give the rest."""
        if self._in_line or len(line) <= HEAD:
            return line
        row = self._blocks.in_table or _ROW.match(line, 0, HEAD)
        size = ROW if row else HEAD
        if len(line) > size:
            self._blocks.line(line[:size], goes_on=True)
            self._in_line = True
            return line[size:]
        return line

    def _preview(self) -> None:
        ahead = self._blocks.copy()
        line = self._pending
        if line and len(line) <= HEAD and not _UNDECIDED.fullmatch(line):
            if not ahead.in_table and _ROW.match(line):
                pass  # the head of a table is shown with its columns
            else:
                ahead.line(line)
        ahead.peek()
