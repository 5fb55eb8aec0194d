"""Text as SQLite takes it, and as it comes back: any text, and whatever damage made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from app.errors import valid_text

_WORD: Final = re.compile(r"\w+", re.UNICODE)

_UNPARTED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Scripts that write words without spaces: no index of words knows where one begins."""


def stored(text: str) -> str | bytes:
    """As a value to bind: bytes only where it is no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def bound(row: Iterable[object]) -> list[object]:
    """The values of a row, to be bound: each text as `stored` gives it."""
    return [stored(value) if isinstance(value, str) else value for value in row]


def read(value: object) -> object:
    """What `stored` was given; anything else as it is."""
    return decoded(value) if isinstance(value, bytes) else value


def decoded(octets: bytes) -> str:
    """For `sqlite3.Connection.text_factory` too: damage costs characters, not the row."""
    try:
        return octets.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return octets.decode("utf-8", "replace")


def indexed(text: str) -> str:
    """As the index of words gets it."""
    return valid_text(text).replace("\0", " ").replace("\x02", " ").replace("\x03", " ")


def as_match(query: str) -> str:
    """`query` for FTS5's MATCH: all its words, the last of which may go on; "" without any."""
    words = _WORD.findall(valid_text(query))
    return " ".join(f'"{word}"*' if word is words[-1] else f'"{word}"' for word in words)


def has_unparted(query: str) -> bool:
    return bool(_UNPARTED.search(query))


def as_like(query: str) -> str:
    """`query` for LIKE with the escape character `\\`: anywhere in a text."""
    return "%" + re.sub(r"([\\%_])", r"\\\1", indexed(query.strip())) + "%"
