"""How much of the model's context a chat takes: what stands in it, and what is being written.

The engine counts, since only it has the tokenizer; it does so between two rounds of whatever
runs. A count is asked for when nothing has changed for a moment, one at a time, and always
for the newest text. While an answer comes, its tokens are known as they come, and what is
written is counted by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.conversation import ChatMessage, Conversation, Role
from app.drafting import Attachment, Draft
from app.ui.bridge import EngineBridge, Request

PAUSE_MS: Final = 250


@dataclass(frozen=True, slots=True)
class Use:
    """Tokens of the context. `size` 0: no model is loaded; `exact`: all was counted."""

    used: int = 0
    size: int = 0
    exact: bool = True

    @property
    def too_long(self) -> bool:
        """Whether what is written cannot be answered: an answer needs a token at least."""
        return 0 < self.size <= self.used


class Context(QObject):
    changed = Signal(object)  # Use
    counted = Signal()  # there are tokens of attachments that were not known

    def __init__(self, bridge: EngineBridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.use = Use()
        self.tokens: dict[Attachment, int] = {}
        """Of attachments, as far as they are counted."""
        self._bridge = bridge
        self._conversation = Conversation()
        self._draft = Draft()
        self._size, self._think = 0, False
        self._coming = False
        self._written: int | None = 0  # tokens of the whole prompt, or of the draft while coming
        self._asked: Request | None = None
        self._stale = False
        self._pause = QTimer(self, interval=PAUSE_MS, singleShot=True)
        self._pause.timeout.connect(self._count)

    @property
    def settled(self) -> bool:
        """Whether `use` holds for what is written now."""
        return not self._pause.isActive() and self._asked is None

    def set_size(self, n_ctx: int) -> None:
        """Of the loaded model, in tokens; 0 without one. Its tokenizer may be another one."""
        if n_ctx != self._size or not n_ctx:
            self.tokens.clear()
            self._size = n_ctx
            self._change()

    def set_think(self, think: bool) -> None:
        self._think = think

    def show(self, conversation: Conversation, draft: Draft, coming: bool) -> None:
        """What is on view: a chat, what is written for it, whether an answer to it comes."""
        if conversation is self._conversation and coming == self._coming and draft == self._draft:
            self._tell()  # its answer has grown, or ended
            return
        self._conversation, self._draft, self._coming = conversation, draft, coming
        self._change()

    def recount(self) -> None:
        """What the model is given has changed otherwise."""
        self._change()

    def _change(self) -> None:
        self._stale = True
        if self._size and (self._draft or self._conversation.turns):
            self._written = None
            self._pause.start()
        else:
            self._pause.stop()
            self._written = 0
        self._tell()

    def _count(self) -> None:
        if self._asked is not None:
            return  # its end asks again
        self._stale = False
        unknown = next((a for a in self._draft.attachments if a not in self.tokens), None)
        if unknown is not None:
            chat: tuple[ChatMessage, ...] = (ChatMessage(Role.USER, unknown.message()),)
        elif self._coming:
            chat = (ChatMessage(Role.USER, self._draft.message()),)
        else:
            chat = self._conversation.upcoming(self._draft.message())
        request = self._asked = self._bridge.count(chat, self._think)
        request.finished.connect(lambda tokens: self._end(tokens, unknown))
        request.failed.connect(lambda _: self._end(None, unknown))
        request.cancelled.connect(lambda: self._end(None, unknown))

    def _end(self, tokens: int | None, attachment: Attachment | None) -> None:
        self._asked = None
        if attachment is not None and tokens is not None:
            self.tokens[attachment] = tokens
            self.counted.emit()
        if self._stale or (attachment is not None and tokens is not None):
            self._pause.start(0)
            return
        self._written = tokens
        self._tell()

    def _tell(self) -> None:
        # What an answer took says nothing where a model is given less of the chat by now.
        whole = self._conversation.start is None
        known = self._conversation.context if whole or self._coming else 0
        if self._written is None:
            used, exact = known, not self._draft
        elif self._coming:
            used, exact = known + (self._written if self._draft else 0), True
        else:
            used, exact = (self._written if self._draft else known or self._written), True
        use = Use(used if self._conversation.turns or self._draft else 0, self._size, exact)
        if use != self.use or self.settled:
            self.use = use
            self.changed.emit(use)
