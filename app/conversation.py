"""A conversation: what was asked and answered. No window, no engine, no database.

Turns form a tree. A question that is put anew and an answer that is made anew stand
beside the old one, under the same parent; nothing is destroyed. What is shown, and what
a model is given, is one path of the tree: from the first turn to the `leaf`.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Final

from app.presets import ChatOptions

_TITLE: Final = 40
"""Characters of the first question that name a conversation."""


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation. `reasoning` is an assistant's thinking, if any."""

    role: Role
    content: str
    reasoning: str = ""


def _new_id() -> str:
    return uuid.uuid4().hex


@dataclass(slots=True, eq=False)
class Turn:
    """A question, or an answer as far as it has come. The one owner of its text.

    `figures` tells how an answer was made, once it is; what it is, is the business of who
    made it. `error` tells why it was not. `context` counts the tokens of the model's
    context that are in use at the end of an answer, 0 where that is not known.
    """

    role: Role
    parent: str | None
    text: str = ""
    reasoning: str = ""
    figures: object | None = None
    error: Exception | None = None
    context: int = 0
    id: str = field(default_factory=_new_id)

    @property
    def said(self) -> bool:
        """Whether there is anything of it."""
        return bool(self.text or self.reasoning)


@dataclass(slots=True, eq=False)
class Conversation:
    """`turns` by id, in the order in which they came; `leaf` is the last one of the path.

    `draft` is what was written and not sent, `options` what holds for this chat alone, both
    as JSON: see `app.drafting` and `app.presets`. `start` is the id of the first turn that a
    model is still given (None: all).
    """

    id: str = field(default_factory=_new_id)
    turns: dict[str, Turn] = field(default_factory=dict)
    leaf: str | None = None
    draft: str = ""
    options: str = ""
    start: str | None = None

    def ask(self, text: str, *, instead_of: Turn | None = None) -> Turn:
        """A new question at the end of the path, or beside the one that it stands for."""
        parent = self.leaf if instead_of is None else instead_of.parent
        return self._add(Turn(Role.USER, parent, text))

    def answer(self, question: Turn) -> Turn:
        """A new answer to `question`, empty yet, beside those that it has."""
        return self._add(Turn(Role.ASSISTANT, question.id))

    def path(self, leaf: Turn | None = None) -> tuple[Turn, ...]:
        """The turns from the first one to `leaf`, which is the conversation's own by default."""
        turns: list[Turn] = []
        at = self.leaf if leaf is None else leaf.id
        while at is not None:
            turns.append(self.turns[at])
            at = turns[-1].parent
        return tuple(reversed(turns))

    def given(self, leaf: Turn | None = None) -> tuple[Turn, ...]:
        """What a model is given of the path: all of it, or what is left from `start` on."""
        path = self.path(leaf)
        ids = [turn.id for turn in path]
        return path[ids.index(self.start) :] if self.start in ids else path

    def upcoming(self, text: str) -> tuple[ChatMessage, ...]:
        """What a model would be given if `text` were asked now."""
        question = Turn(Role.USER, self.leaf, text)
        turns = {**self.turns, question.id: question}
        asked = Conversation(turns=turns, leaf=question.id, options=self.options, start=self.start)
        return asked.messages(question)

    def beside(self, turn: Turn) -> tuple[Turn, ...]:
        """All turns with the parent of `turn`, itself among them, in the order they came."""
        return tuple(t for t in self.turns.values() if t.parent == turn.parent)

    def messages(self, question: Turn) -> tuple[ChatMessage, ...]:
        """The path to `question`, for a model that is to answer it.

        Earlier questions without an answer are left out: a prompt that was too long
        would make every later one too long as well, and templates want turns.
        """
        path = self.given(question)
        system = ChatOptions.of_json(self.options).system
        result = [ChatMessage(Role.SYSTEM, system)] if system.strip() else []
        for turn, following in pairwise(path):
            if following.said if turn.role is Role.USER else turn.said:
                result.append(ChatMessage(turn.role, turn.text, turn.reasoning))
        result.append(ChatMessage(Role.USER, question.text))
        return tuple(result)

    @property
    def last_question(self) -> Turn | None:
        """The newest question of the path."""
        return next((t for t in reversed(self.path()) if t.role is Role.USER), None)

    @property
    def last_answer(self) -> Turn | None:
        """The newest answer of the path."""
        return next((t for t in reversed(self.path()) if t.role is Role.ASSISTANT), None)

    @property
    def context(self) -> int:
        """Tokens of the model's context in use at the end of the path, as far as known."""
        return next((t.context for t in reversed(self.path()) if t.context), 0)

    @property
    def title(self) -> str:
        first = next((t for t in self.path() if t.role is Role.USER), None)
        if first is None:
            return "New chat"
        words = " ".join(first.text.split())
        return words if len(words) <= _TITLE else f"{words[: _TITLE - 1].rstrip()}…"

    def _add(self, turn: Turn) -> Turn:
        self.turns[turn.id] = turn
        self.leaf = turn.id
        return turn
