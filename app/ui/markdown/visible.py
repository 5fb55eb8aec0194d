"""Signs that would change the page unseen, made visible.

Bidirectional overrides and isolates can make code read otherwise than it runs ("Trojan
Source", CVE-2021-42574); an escape in code that is pasted into a terminal commands it; some
code points are Qt's own marks for blocks and frames.
"""

from __future__ import annotations

import re
from typing import Final

_HIDDEN: Final = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufdd0\ufdd1\ufffc\ud800-\udfff]"
)
_LINES: Final = {"\r": "\n", "\u2028": "\n", "\u2029": "\n"}


def visible(text: str) -> str:
    """`text` in which every direction is one that can be seen, and every line a line."""
    return _HIDDEN.sub(_shown, text) if _HIDDEN.search(text) else text


def _shown(match: re.Match[str]) -> str:
    sign = match[0]
    if sign in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069":
        return f"‹U+{ord(sign):04X}›"
    if "\0" < sign < " " and sign not in _LINES:
        return chr(ord("␀") + ord(sign))
    return _LINES.get(sign, "\ufffd")
