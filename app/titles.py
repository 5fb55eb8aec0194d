"""What a chat is about, in a few words, from its first question.

No model is asked: it would be busy with the answer, and a small one would guess. What
people write before they come to the point is left out, and so is what is no sentence.
"""

from __future__ import annotations

import re
from typing import Final

from app.markup import without_markup

LONGEST: Final = 48
"""Characters of a title, at most."""

_ENOUGH: Final = 4_000  # characters of a question that are looked at

_FENCED: Final = re.compile(r"(```|~~~).*?(\1|\Z)", re.DOTALL)
_GREETING: Final = re.compile(
    r"(?:hi|hello|hey|hallo|good (?:morning|afternoon|evening|day)|dear \w+)"
    r"(?: (?:there|all|everyone|slipstream))?[\s,.!:;-]+",
    re.IGNORECASE,
)
_POLITE: Final = re.compile(
    r"(?:please|kindly|(?:could|can|would|will) you(?: please)?|i(?:'d| would) like you to"
    r"|i (?:want|need) you to|help me(?: to)?|tell me)\s*,?\s+",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")


def title_of(question: str) -> str:
    """A line of at most `LONGEST` characters; empty where the question says nothing."""
    start = question[:_ENOUGH]
    for text in (_FENCED.sub("\n", start), start):  # code alone is better than nothing
        for line in without_markup(text).splitlines():
            if title := _pointed(" ".join(line.split())):
                return title
    return ""


def _pointed(line: str) -> str:
    said = _SENTENCE.split(_without_manners(line), maxsplit=1)[0].rstrip(" .:;,")
    if not any(c.isalnum() for c in said):
        return ""
    return _cut(said[0].upper() + said[1:] if said[0].islower() else said)


def _without_manners(line: str) -> str:
    """What is left where greetings and courtesies at the beginning are taken off."""
    while found := _GREETING.match(f"{line} ") or _POLITE.match(line):
        line = line[found.end() :]
    return line


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    head = text[: LONGEST - 1]
    at = head.rfind(" ")
    return f"{(head[:at] if at > LONGEST // 2 else head).rstrip(' ,;:')}…"
