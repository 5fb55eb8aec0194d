"""Colours of closed code, lexed in slices so that a long block never holds the loop.

A lexer is imported when its language is first met, which takes up to 60 ms, and all of them with
the first: that is a task's work.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType
from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QColor, QTextBlock, QTextCharFormat, QTextDocument, QTextLayout

from app.jobs import CancelToken
from app.ui import task
from app.ui.look import theme
from app.ui.markdown.copying import plain_text, utf16_length
from app.ui.markdown.document import Decoration, code_blocks

if TYPE_CHECKING:
    from pygments.lexer import Lexer

SLICE: Final = 0.006
"""Seconds of highlighting in one turn of the event loop."""

_READ: Final = 10_000  # characters of code that are read at once

_COLOURS: Final = {
    Comment: "muted",
    Keyword: "keyword",
    String: "string",
    Number: "number",
    Name.Function: "name_",
    Name.Class: "name_",
    Name.Tag: "name_",
    Name.Decorator: "name_",
    Name.Attribute: "number",
    Name.Builtin: "name_",
    Generic.Inserted: "string",
    Generic.Deleted: "number",
    Generic.Subheading: "name_",
    Generic.Prompt: "muted",
}


class Highlighter(QObject):
    """Colours the code of one document, block after block, in the order of `add`."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self._document = document
        self._jobs: deque[Iterator[QTextBlock | None]] = deque()
        self._loading: list[Decoration] = []  # code whose lexer is to come
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._work)

    @property
    def busy(self) -> bool:
        """Whether colours are still to come."""
        return bool(self._loading or self._jobs)

    def add(self, code: Decoration) -> None:
        language = _language(code)
        if language in _lexers:
            self._begin(code)
            return
        self._loading.append(code)

        def load(_: Callable[[float], None], token: CancelToken) -> None:
            _lexers[language] = _lexer(language)

        task.run(self, load, lambda _: self._loaded(), lambda _: None)

    def clear(self) -> None:
        self._jobs.clear()
        self._loading.clear()
        self._timer.stop()

    def _loaded(self) -> None:
        waiting, self._loading = self._loading, []
        for code in waiting:
            if _language(code) in _lexers:
                self._begin(code)
            else:
                self._loading.append(code)

    def _begin(self, code: Decoration) -> None:
        make = _lexers[_language(code)]
        if make is not None:
            self._jobs.append(_lines(self._document, code, make()))
            self._timer.start()

    def _work(self) -> None:
        until = time.perf_counter() + SLICE
        first = last = None
        while self._jobs and time.perf_counter() < until:
            try:
                block = next(self._jobs[0])
            except StopIteration:
                self._jobs.popleft()
                continue
            if block:
                first, last = first or block, block
        if first and last:
            start = first.position()
            self._document.markContentsDirty(start, last.position() + last.length() - 1 - start)
        if not self._jobs:
            self._timer.stop()


_lexers: Final[dict[str, Callable[[], Lexer] | None]] = {"": None}
"""What makes one, by the languages met so far; None of one that has none."""


def _language(code: Decoration) -> str:
    return code.language.split()[0] if code.language else ""


def _lexer(language: str) -> Callable[[], Lexer] | None:
    from pygments.lexers import find_lexer_class_by_name
    from pygments.util import ClassNotFound

    try:
        kind = find_lexer_class_by_name(language)
    except ClassNotFound:
        return None
    make = partial(kind, stripnl=False)  # some know a last line by its newline only
    make()  # the first of a kind compiles its rules
    return make


def _lines(document: QTextDocument, code: Decoration, lexer: Lexer) -> Iterator[QTextBlock | None]:
    """Set the formats of one text block after the other; nothing is a pause."""
    text = ""
    for at in range(code.start, code.end + 1, _READ):
        text += plain_text(document, at, min(at + _READ, code.end))
        yield None
    blocks = code_blocks(document, code)
    block = next(blocks)
    column = 0
    formats: list[QTextLayout.FormatRange] = []
    for piece, colour in _pieces(lexer, text):
        size = utf16_length(piece)
        # A newline ends the text block, and so does a chunk of a long line.
        while piece == "\n" or size > block.length() - 1 - column:
            room = block.length() - 1 - column
            if colour and room:
                formats.append(_range(column, room, colour))
            block.layout().setFormats(formats)
            yield block
            following = next(blocks, None)
            if following is None:
                return
            block, column, formats = following, 0, []
            if piece == "\n":
                break
            size -= room
        else:
            if colour and size:
                formats.append(_range(column, size, colour))
            column += size
    block.layout().setFormats(formats)
    yield block


def _pieces(lexer: Lexer, text: str) -> Iterator[tuple[str, str]]:
    """Newlines and what is between them, with the name of its colour or nothing."""
    for kind, value in lexer.get_tokens(text):
        colour = _colour(kind)
        if "\n" not in value:
            yield value, colour
            continue
        for piece in re.split("(\n)", value):
            if piece:
                yield piece, colour


@cache
def _colour(kind: _TokenType) -> str:
    return next((_COLOURS[k] for k in reversed(kind.split()) if k in _COLOURS), "")


def _range(start: int, length: int, colour: str) -> QTextLayout.FormatRange:
    result = QTextLayout.FormatRange()
    result.start, result.length = start, length
    look = QTextCharFormat()
    look.setForeground(QColor(getattr(theme.current(), colour)))
    result.format = look
    return result
