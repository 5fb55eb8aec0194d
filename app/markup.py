"""Text without the signs of Markdown, as a line of a list shows it."""

from __future__ import annotations

import re
from typing import Final

_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\((?:[^()\s\x00-\x1f]|\([^()\s\x00-\x1f]*\))*\)")
_AT_BEGIN: Final = re.compile(
    r"^[ \t]*(?:[#>]+[ \t]*|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?|\d+[.)][ \t]+)"  # heading, quote, item
    r"|^[ \t]*(?:`{3,}|~{3,})[^\n`]*$",  # a fence
    re.MULTILINE,
)
# Two asterisks are strong type wherever they touch a word, also where an excerpt has one of the
# two pairs, but for powers; a single one multiplies more often than it slants.
_AROUND: Final = re.compile(
    r"`+(?=\S)|(?<=\S)`+|~~(?=\S)|(?<=\S)~~"
    r"|(?<![A-Za-z0-9])\*{2,3}(?=\S)|(?<=\S)\*{2,3}(?![A-Za-z0-9])"
    r"|(?<![\w*])\*(?=[^\s*][^*\n]*(?<=\S)\*(?!\w))|(?<=[^\s*])\*(?![\w*])"
)


def without_markup(text: str) -> str:
    """What is left where signs are taken off; of a link, its words. Lines stay lines."""
    return _AROUND.sub("", _AT_BEGIN.sub("", _LINK.sub(r"\1", text)))
