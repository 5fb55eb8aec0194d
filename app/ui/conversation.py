"""Conversations of this session, in memory: what was asked and what came."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.engine import Answer, ChatMessage, Role

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
        """The chat to be answered; an answer that never came is left out."""
        result: list[ChatMessage] = []
        for exchange in self.exchanges:
            result.append(ChatMessage(Role.USER, exchange.question))
            if exchange.text or exchange.reasoning:
                reply = ChatMessage(Role.ASSISTANT, exchange.text, exchange.reasoning)
                result.append(reply)
        return tuple(result)
