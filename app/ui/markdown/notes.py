"""Which footnotes of a text have names: what refers to a name that there is none of is no note."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.ui.markdown.inline import LABEL
from app.ui.markdown.stream import MarkdownStream

_NOTE: Final = re.compile(rf"\[\^(?!\d)({LABEL})\]:")
"""What there is in a text with such a note, and also in one that shows how it is written."""


class _Heard:
    """A `stream.Sheet` on which nothing is seen but what its footnotes are called."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._provisional = False

    def begin(self) -> None:
        self._provisional = False

    def tail(self) -> None:
        self._provisional = True

    def text(self, kind: str, source: str, *, after: str | None) -> None:
        name = kind.removeprefix("note:")
        if name != kind and not self._provisional and not name.isdigit():
            self.names.add(name)

    def end(self) -> None: ...
    def quote(self) -> None: ...
    def item(self, number: int | None, mark: str, *, loose: bool) -> None: ...
    def leave(self) -> None: ...
    def rule(self) -> None: ...
    def code(self, language: str) -> None: ...
    def code_line(self, text: str) -> None: ...
    def code_more(self, text: str) -> None: ...
    def end_code(self) -> None: ...
    def formula(self, source: str) -> None: ...
    def table(self, header: Sequence[str], align: Sequence[str]) -> None: ...
    def row(self, cells: Sequence[str]) -> None: ...
    def end_table(self) -> None: ...


def names(document: str) -> frozenset[str]:
    """Of the footnotes in it that have one."""
    if not _NOTE.search(document):
        return frozenset()
    heard = _Heard()
    stream = MarkdownStream(heard)
    stream.feed(document)
    stream.finish()
    return frozenset(heard.names)
