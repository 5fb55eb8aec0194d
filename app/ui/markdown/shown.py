"""What a reader sees of Markdown, without a page: to count words in it."""

from __future__ import annotations

import re
from typing import Final

from PySide6.QtGui import QTextDocument

from app.ui.markdown.document import DocumentWriter
from app.ui.markdown.notes import names
from app.ui.markdown.stream import MarkdownStream

_SIGNS: Final = str.maketrans("", "", "\\*_~`")
"""Of what Markdown takes away, all that may stand within a word."""

_JOINTS: Final = ("](", "][", "[^")
"""Of links and notes: what is beside them stands within one word on the page."""

_WORD: Final = re.compile(r"[^\W_]+")


def lines(source: str) -> list[str]:
    """The text of each block of the page that `source` gives."""
    document = QTextDocument()
    writer = DocumentWriter(document)
    writer.names = names(source)
    stream = MarkdownStream(writer)
    stream.feed(source)
    stream.finish()
    result, block = [], document.begin()
    while block.isValid():
        result.append(block.text())
        block = block.next()
    return result


def may_show(source: str, words: str) -> bool:
    """False where `words` cannot be on the page of `source`: a look at it, and no page."""
    if any(joint in source for joint in _JOINTS):
        return True
    text = source.translate(_SIGNS).lower()
    return all(word in text for word in _WORD.findall(words.translate(_SIGNS).lower()))
