"""What is written, and for which chat: drafts, attachments, and whether they fit.

A draft belongs to its chat and comes back with it, and a file that is being read goes with that
draft. A text leaves the composer only when it
was accepted; one that the context does not hold is told about before it is sent, with what
can be done.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.conversation import Conversation
from app.drafting import Attachment, Draft
from app.ui.chat.composer import Composer, no_picture
from app.ui.chat.context import Context, Use
from app.ui.chat.file_reads import FileReads
from app.ui.look import words
from app.ui.window.controller import Controller

_SAVED_MS: Final = 500
"""Pause in writing after which a draft is kept."""
_AROUND: Final = 64
"""Tokens that a template writes around a message, at most."""


class Writing(QObject):
    edited = Signal(object)  # Conversation: its draft is another one
    sent = Signal()
    taken_away = Signal(object, object)  # Attachment, and what puts it back

    def __init__(
        self, controller: Controller, composer: Composer, context: Context, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._controller, self._composer, self._context = controller, composer, context
        self._shown: Conversation | None = None
        self._sending = False  # as soon as it is counted
        self._reads: dict[str, FileReads] = {}  # by the id of the chat that they are for
        self._save = QTimer(self, interval=_SAVED_MS, singleShot=True)
        self._save.timeout.connect(self.keep)
        composer.edited.connect(self._edited)
        composer.send_wanted.connect(self.send)
        composer.think_changed.connect(controller.set_think)
        controller.edited.connect(self.show_think)
        composer.files_given.connect(self.attach)
        composer.picture_given.connect(self._refuse_picture)
        composer.reading_unwanted.connect(self._stop_reading)
        composer.taken_away.connect(self._offer_back)
        context.changed.connect(self._show_use)
        context.counted.connect(lambda: composer.set_tokens(context.tokens))

    def show(self, conversation: Conversation) -> None:
        """Another chat is on view, or the same one again: put its draft into the composer."""
        if conversation is not self._shown:
            self.keep()
            self._sending = False
            self._shown = conversation
            self._composer.set_draft(Draft.of_json(conversation.draft))
            self._show_reading()
            self.show_think()
        self.refresh()

    def show_think(self) -> None:
        """The chat on view has other options, or the settings have."""
        self._composer.set_think(self._controller.thinks)
        self._context.set_think(self._controller.thinks)

    def refresh(self) -> None:
        """The chat on view has grown."""
        if self._shown is not None:
            self._context.show(self._shown, self._composer.draft(), self._controller.busy)

    def keep(self) -> None:
        """The draft of the chat on view goes into it."""
        self._save.stop()
        if self._shown is not None and self._shown.draft != (draft := self._draft_json()):
            self._shown.draft = draft
            self.edited.emit(self._shown)

    def send(self) -> None:
        """Send what is written if it fits; where that is not known yet, once it is."""
        use, draft = self._context.use, self._composer.draft()
        room = use.size - self._controller.current.context
        # A token has a byte at least: what has fewer than fit needs no count.
        sure = use.size == 0 or len(draft.message().encode("utf-8", "replace")) + _AROUND < room
        if not sure and not self._context.settled:
            self._sending = True
            self._composer.set_hint("Counting its tokens …")
            return
        self._sending = False
        if not sure and use.too_long:
            return  # what can be done is on view
        if self._controller.ask(draft.message()):
            self._composer.clear()
            self.keep()
            self.sent.emit()

    def attach(self, files: Sequence[Path]) -> None:
        """Read files off the main thread; each is attached whole, or refused with a reason."""
        if self._shown is not None:
            self._sending = False
            self._reads_of(self._shown).read(files)

    def _offer_back(self, attachment: Attachment, place: int) -> None:
        if (chat := self._shown) is not None:
            self.taken_away.emit(attachment, lambda: self._put(chat, attachment, place))

    def _put(self, chat: Conversation, attachment: Attachment, place: int | None = None) -> None:
        """Into the draft of its own chat, also where another one is on view by now."""
        chat = self._controller.book.get(chat.id) or chat
        if chat is self._shown:
            self._composer.attach(attachment, place)
        else:
            chat.draft = Draft.of_json(chat.draft).with_attachment(attachment, place).json()
            self.edited.emit(chat)

    def _reads_of(self, chat: Conversation) -> FileReads:
        known = self._reads.get(chat.id)
        if known is None:
            known = self._reads[chat.id] = FileReads(self)
            known.changed.connect(self._show_reading)
            known.came.connect(lambda attachment: self._put(chat, attachment))
            known.refused.connect(self._controller.refused)
        return known

    def _show_reading(self) -> None:
        """Of the chat on view."""
        reads = self._reads.get(self._shown.id) if self._shown is not None else None
        self._composer.set_reading(reads.names if reads else ())

    def _stop_reading(self) -> None:
        if self._shown is not None:
            self._reads_of(self._shown).stop()

    def _refuse_picture(self) -> None:
        self._controller.refused.emit(no_picture())

    def _edited(self) -> None:
        self._sending = False
        self._composer.set_hint("")
        self._save.start()
        self.refresh()

    def _show_use(self, use: Use) -> None:
        self._composer.set_context(use.used, use.size, use.exact)
        self._composer.set_warning(self._warning(use) if use.exact else "")
        if self._sending and self._context.settled:
            self._composer.set_hint("")
            self.send()

    def _warning(self, use: Use) -> str:
        if not use.too_long:
            return ""
        over, chat = use.used - use.size + 1, self._controller.current
        ways = ["go on without the oldest messages"] if self._controller.can_forget else []
        ways += ["start a new chat"] if chat.turns else []
        if self._composer.draft():
            what = "this chat and what is written have" if chat.turns else "what is written has"
            return (
                f"Too long by {words.tokens(over)}: {what} {words.tokens(use.used)}, "
                f"the context holds {use.size:,}. {words.choice('shorten it', *ways)}"
            )
        return f"This chat fills the context of {use.size:,} tokens. {words.choice(*ways)}"

    def _draft_json(self) -> str:
        return self._composer.draft().json()
