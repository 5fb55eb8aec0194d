"""What goes to the database and comes from it: frozen, so that any thread may hold it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.conversation import Conversation, End, Role, Turn
from app.errors import EngineError, SlipstreamError

_log = logging.getLogger(__name__)

_LARGEST: Final = 2**63 - 1
"""Integer that the database takes."""

ERROR_REMEDY: Final = "Answer again."


@dataclass(frozen=True, slots=True)
class Codec:
    """How an answer's figures become JSON and come back: who makes them knows."""

    encode: Callable[[object], Mapping[str, Any] | None] = lambda figures: None
    decode: Callable[[Mapping[str, Any]], object | None] = lambda kept: None


@dataclass(frozen=True, slots=True)
class Summary:
    """A chat in the list."""

    id: str
    title: str
    named: bool
    pinned: bool
    created: float
    used: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A chat in which something was found. `turn` is None where only its title has it.

    `excerpt` is what is around it; what was looked for is between `START` and `STOP`.
    """

    chat: str
    title: str
    pinned: bool
    used: float
    turn: str | None = None
    excerpt: str = ""
    count: int = 0

    START = "\x02"
    STOP = "\x03"


@dataclass(frozen=True, slots=True)
class Opened:
    """What `open` found. `lost` counts rows that could not be read."""

    chats: tuple[Summary, ...] = ()
    last: str = ""  # the id of the chat that was on view
    problem: SlipstreamError | None = None  # what is to be said about the file
    lasting: bool = True  # whether what is saved now stays


@dataclass(frozen=True, slots=True)
class TurnRecord:
    id: str
    parent: str | None
    place: int
    role: str
    text: str
    reasoning: str
    created: float
    thought_ms: int
    end: str
    context: int
    error: str | None  # JSON
    figures: str | None  # JSON

    @classmethod
    def of(cls, turn: Turn, codec: Codec) -> TurnRecord:
        figures = codec.encode(turn.figures) if turn.figures is not None else None
        error = None
        if isinstance(turn.error, SlipstreamError):
            told = {"message": turn.error.message, "remedy": turn.error.remedy}
            error = json.dumps({"kind": type(turn.error).__name__, **told})
        return cls(
            id=turn.id,
            parent=turn.parent,
            place=turn.place,
            role=turn.role.value,
            text=turn.text,
            reasoning=turn.reasoning,
            created=turn.created,
            thought_ms=turn.thought_ms,
            end=turn.end.value,
            context=turn.context,
            error=error,
            figures=None if figures is None else json.dumps(figures, separators=(",", ":")),
        )

    def turn(self, codec: Codec) -> Turn:
        """Raises ValueError or TypeError where this is no turn."""
        for name in ("place", "thought_ms", "context"):
            if type(value := getattr(self, name)) is not int:
                raise TypeError(name)
            if abs(value) > _LARGEST:
                raise ValueError(name)
        if not isinstance(self.created, int | float) or not isinstance(self.id, str):
            raise TypeError("created, id")
        if not abs(self.created) <= _LARGEST:  # nor what is no number
            raise ValueError("created")
        if not isinstance(self.text, str) or not isinstance(self.reasoning, str):
            raise TypeError("text")
        result = Turn(
            role=Role(self.role),
            parent=self.parent if isinstance(self.parent, str) else None,
            text=self.text,
            reasoning=self.reasoning,
            figures=_figures(self.figures, codec),
            error=_error(self.error),
            context=max(0, self.context),
            id=self.id,
            end=End(self.end),
            thought_ms=max(0, self.thought_ms),
            created=float(self.created),
            place=self.place,
        )
        if result.end is End.COMING:  # whoever made it is gone
            result.end = End.LOST if result.role is Role.ASSISTANT else End.DONE
        return result


@dataclass(frozen=True, slots=True)
class ChatRecord:
    id: str
    title: str
    name: str
    pinned: bool
    created: float
    used: float
    leaf: str | None
    draft: str
    options: str
    start: str | None

    @classmethod
    def of(cls, chat: Conversation) -> ChatRecord:
        return cls(
            id=chat.id,
            title=chat.title,
            name=chat.name,
            pinned=chat.pinned,
            created=chat.created,
            used=chat.used,
            leaf=chat.leaf,
            draft=chat.draft,
            options=chat.options,
            start=chat.start,
        )


def _figures(kept: object, codec: Codec) -> object | None:
    table = _table(kept)
    return codec.decode(table) if table is not None else None


def _error(kept: object) -> SlipstreamError | None:
    table = _table(kept)
    if table is None:
        return None
    kinds = {kind.__name__: kind for kind in SlipstreamError.__subclasses__()}
    kind = kinds.get(str(table.get("kind")), EngineError)
    message, remedy = str(table.get("message", "")), str(table.get("remedy", ERROR_REMEDY))
    return kind(message, remedy=remedy)


def _table(kept: object) -> dict[str, Any] | None:
    if not isinstance(kept, str):
        return None
    try:
        table = json.loads(kept)
    except (ValueError, RecursionError):
        _log.warning("Figures or an error of a turn cannot be read.")
        return None
    return table if isinstance(table, dict) else None
