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
# A pair around words. What stands behind a letter, a digit or a closing bracket multiplies, as does
# one that has no partner, which may be one that an excerpt cut off, too.
_AROUND: Final = re.compile(
    r"(?<![A-Za-z0-9_)\]*~])(\*{1,3}|~~)(?=[^\s*~])([^\n]*?[^\s*~])\1(?![A-Za-z0-9_(\[*~])"
)
_CODE: Final = re.compile(r"`+(?=\S)|(?<=\S)`+")


def without_markup(text: str) -> str:
    """What is left where signs are taken off; of a link, its words. Lines stay lines."""
    words = _CODE.sub("", _AT_BEGIN.sub("", _LINK.sub(r"\1", text)))
    return _AROUND.sub(r"\2", _AROUND.sub(r"\2", words))  # of a pair within a pair, too
