"""Conversations of this session, in memory: what was asked and what came."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.conversation import ChatMessage, Role
from app.engine import Answer

_TITLE = 40
"""Characters of the first question that name a conversation."""


@dataclass(slots=True)
class Exchange:
    """A question and its answer, as far as it has come."""

    question: str
    text: str = ""
    reasoning: str = ""
    answer: Answer | None = None


@dataclass(slots=True)
class Conversation:
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def title(self) -> str:
        if not self.exchanges:
            return "New chat"
        words = " ".join(self.exchanges[0].question.split())
        return words if len(words) <= _TITLE else f"{words[: _TITLE - 1].rstrip()}…"

    def messages(self) -> tuple[ChatMessage, ...]:
        """The chat whose last question is to be answered.

        Earlier questions without an answer are left out: a prompt that was too long
        would make every later one too long as well, and templates want turns.
        """
        result: list[ChatMessage] = []
        for exchange in self.exchanges[:-1]:
            if exchange.text or exchange.reasoning:
                result.append(ChatMessage(Role.USER, exchange.question))
                reply = ChatMessage(Role.ASSISTANT, exchange.text, exchange.reasoning)
                result.append(reply)
        result.append(ChatMessage(Role.USER, self.exchanges[-1].question))
        return tuple(result)
