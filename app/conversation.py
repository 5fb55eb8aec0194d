"""What is said in a chat, and by whom. No window, no engine, no database."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
