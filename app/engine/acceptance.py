"""What drafts of a pair have come to, by kind of text, kept between runs: answers begin with it.

In what a chat gave before there is more than in its kind, but nothing of a chat goes into a file:
that is known for as long as the pair is loaded.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from app import kept
from app.binding import Learned, NativePair
from app.conversation import ChatMessage, Role
from app.errors import OptionError

_CHATS: Final = 64  # that are remembered
_LATIN: Final = "\u024f"  # the last letter of Latin scripts
_CODE: Final = re.compile(
    r"```|\b(code|function|program|script|regex|sql|html|bash|python|rust|java\w*|c\+\+)", re.I
)


class TextKind(StrEnum):
    """What an answer will mostly be: drafters fare differently with each."""

    THOUGHT = "thought"
    CODE = "code"
    PROSE = "prose"
    OTHER_SCRIPT = "other script"  # than Latin


def kind_of(chat: Sequence[ChatMessage], *, think: bool) -> TextKind:
    """By the last question and the answer before it."""
    if think:
        return TextKind.THOUGHT
    text = "\n".join(message.content for message in chat[-2:])
    letters = [c for c in text if c.isalpha()]
    if sum(c > _LATIN for c in letters) * 2 > len(letters):
        return TextKind.OTHER_SCRIPT
    return TextKind.CODE if _CODE.search(text) else TextKind.PROSE


@dataclass(slots=True)
class Acceptance:
    """Of the pair that `key` names, in `file`."""

    file: Path
    key: str
    _chats: dict[tuple[int, TextKind], Learned] = field(default_factory=dict, init=False)

    def begin(self, native: NativePair, chat: Sequence[ChatMessage], kind: TextKind) -> None:
        """Tells the governor what this chat, else texts of this kind, else of any have given."""
        known = self._chats.get(_named(chat, kind)) or self._kept(kind)
        if known:
            with contextlib.suppress(OptionError):  # damaged: it learns anew
                native.set_learned(known)

    def end(self, native: NativePair, chat: Sequence[ChatMessage], kind: TextKind) -> None:
        """Keeps what it has learned since."""
        name, learned = _named(chat, kind), native.learned()
        self._chats.pop(name, None)
        self._chats[name] = learned
        while len(self._chats) > _CHATS:
            del self._chats[next(iter(self._chats))]
        kinds = self._kinds()
        kinds.pop(kind, None)
        kept.keep(self.file, self.key, {**kinds, kind: dataclasses.asdict(learned)})

    def _kept(self, kind: TextKind) -> Learned | None:
        kinds = self._kinds()
        found: dict[str, Any] = kinds.get(kind) or next(reversed(kinds.values()), {})
        with contextlib.suppress(ValueError, TypeError, KeyError):
            names = [part.name for part in dataclasses.fields(Learned)]
            return Learned(*(tuple(map(float, found[name])) for name in names))
        return None

    def _kinds(self) -> dict[str, Any]:
        found = kept.find(self.file, self.key)
        return found if isinstance(found, dict) else {}


def _named(chat: Sequence[ChatMessage], kind: TextKind) -> tuple[int, TextKind]:
    """A chat is known again by its first question."""
    first = next((message.content for message in chat if message.role is Role.USER), "")
    return hash(first), kind
