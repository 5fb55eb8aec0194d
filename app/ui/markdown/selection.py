"""What is selected of a text that is written again, as a whole or from somewhere on."""

from __future__ import annotations

from itertools import takewhile
from operator import eq

from PySide6.QtGui import QTextCursor, QTextDocument
from PySide6.QtWidgets import QTextEdit


class Selection:
    """Of `view` as it is now; nothing before position `start` is written again."""

    def __init__(self, view: QTextEdit, start: int = 0) -> None:
        self._view, self._start = view, start
        cursor = view.textCursor()
        self._anchor, self._position = cursor.anchor(), cursor.position()
        self.end = cursor.selectionEnd()
        self._signs = _signs(view.document(), start, self.end)

    def restore(self) -> None:
        """As far as the text before it is the same."""
        now = _signs(self._view.document(), self._start, self.end)
        same = self._start + _common(self._signs, now)
        anchor, position = min(self._anchor, same), min(self._position, same)
        cursor = self._view.textCursor()
        if (cursor.anchor(), cursor.position()) != (anchor, position):
            cursor.setPosition(anchor)
            cursor.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
            self._view.setTextCursor(cursor)


def _signs(document: QTextDocument, start: int, end: int) -> memoryview:
    """As many as there are positions: of a table, a cursor would give less."""
    raw = document.toRawText().encode("utf-16-le", "surrogatepass")
    return memoryview(raw).cast("H")[start:end]


def _common(one: memoryview, other: memoryview) -> int:
    """How many signs are the same at the beginning of both."""
    if one == other:
        return len(one)
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))
