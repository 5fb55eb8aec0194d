"""The chats: which there are, which one is on view, and that they are kept.

What is known of all of them is a summary; the turns of one are read when it is first
wanted, and let go when many others were wanted since.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, Signal

from app.conversation import Conversation, Turn
from app.errors import HistoryError
from app.history import Opened, Summary
from app.ui.archive import Archive

OPEN: Final = 12
"""Chats whose turns stay in memory."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """A chat that can still come back."""

    summary: Summary
    chat: Conversation | None


class Book(QObject):
    listed = Signal()  # there are others, or they are called otherwise
    shown = Signal(object)  # Conversation: another one than before
    turns_changed = Signal(object)  # Conversation
    deleted = Signal(object)  # Deleted
    told = Signal(object)  # SlipstreamError: about the file of chats

    def __init__(self, archive: Archive, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._archive = archive
        self.current = Conversation()
        self._open: dict[str, Conversation] = {self.current.id: self.current}  # newest last
        self._summaries: dict[str, Summary] = {}
        self._deleted: set[str] = set()  # those that can still come back
        self._emptied: set[str] = set()  # those of which nothing is left to be kept
        self._wanted = ""  # the chat that is to be shown when it has been read
        self.held: Callable[[str], bool] = lambda chat: False  # whether one must stay in memory
        self.lasting = False
        archive.opened.connect(self._opened)
        archive.failed.connect(self.told)

    # --- reading --------------------------------------------------------------------

    @property
    def summaries(self) -> list[Summary]:
        """Those used last first."""
        return sorted(self._summaries.values(), key=lambda s: s.used, reverse=True)

    def get(self, chat: str) -> Conversation | None:
        """One that is in memory."""
        return self._open.get(chat)

    def with_chat(self, chat: str, then: Callable[[Conversation], None]) -> None:
        """Call `then` with a chat, which may have to be read first."""
        if (known := self._open.get(chat)) is not None:
            then(known)
            return

        def came(found: Conversation | None, lost: int) -> None:
            if found is None:
                self._summaries.pop(chat, None)
                self.listed.emit()
                return
            if lost:
                what = "message" if lost == 1 else "messages"
                message = f"{lost} {what} of “{found.title}” cannot be read."
                self.told.emit(HistoryError(message, remedy="The others are here."))
            then(self._open.setdefault(chat, found))
            self._let_go()

        self._archive.load(chat, came)

    # --- which one is shown -----------------------------------------------------------

    def show_new(self) -> None:
        """An empty chat; the one that is empty already, if there is one, and its draft."""
        unused = (
            c for c in self._open.values() if not (c.turns or c.name or c.options or c.pinned)
        )
        empty = next(unused, None)
        if empty is None:
            empty = Conversation()
            self._open[empty.id] = empty
        self._show(empty)

    def show_chat(self, chat: str) -> None:
        self.want_chat(chat, self._show)

    def want_chat(self, chat: str, then: Callable[[Conversation], None]) -> None:
        """As `with_chat`, but only where no other one was to be shown meanwhile."""
        self._wanted = chat
        self.with_chat(chat, lambda found: then(found) if self._wanted == chat else None)

    def _show(self, chat: Conversation) -> None:
        self._wanted = chat.id
        self.current = chat
        self._open[chat.id] = self._open.pop(chat.id, chat)
        if self.lasting:  # else which one was on view is still to be read
            self._archive.remember(chat.id if chat.turns else "")
        self.shown.emit(chat)
        self._let_go()

    # --- changing ---------------------------------------------------------------------

    def save(
        self,
        chat: Conversation,
        turns: Iterable[Turn] = (),
        gone: Iterable[str] = (),
        then: Callable[[], None] | None = None,
    ) -> None:
        """Keep a chat, those of its turns that changed, and that others are gone."""
        blank = chat.blank
        if blank and chat.id not in self._summaries:
            return  # an empty chat is none
        if chat.id in self._deleted:
            return  # what is still to be kept of it, a draft, is when it comes back
        self._list(chat)
        self._archive.save(chat, turns, gone, then)
        if blank != (chat.id in self._emptied):
            self._emptied ^= {chat.id}
            self._archive.set_deleted(chat.id, blank)

    def _list(self, chat: Conversation) -> None:
        """As it is called now; one that is empty is in no list."""
        before = self._summaries.pop(chat.id, None)
        if not chat.blank:
            self._summaries[chat.id] = Summary(
                chat.id, chat.title, bool(chat.name), chat.pinned, chat.created, chat.used
            )
        if self._summaries.get(chat.id) != before:
            self.listed.emit()

    def add(self, chat: Conversation) -> None:
        """A chat from elsewhere, with all its turns."""
        self._open[chat.id] = chat
        self.save(chat, chat.turns.values())
        self._show(chat)

    def use(self, chat: Conversation) -> None:
        """It goes to the top of the list."""
        chat.used = time.time()
        if chat is self.current:
            self._archive.remember(chat.id)

    def rename(self, chat: str, name: str) -> None:
        """An empty name gives it back the one it had by itself."""
        self._change(chat, lambda found: setattr(found, "name", " ".join(name.split())))

    def pin(self, chat: str, pinned: bool) -> None:
        self._change(chat, lambda found: setattr(found, "pinned", pinned))

    def _change(self, chat: str, change: Callable[[Conversation], None]) -> None:
        def changed(found: Conversation) -> None:
            change(found)
            self.save(found)

        self.with_chat(chat, changed)

    def delete(self, chat: str) -> None:
        """Out of the list; `undelete` takes it back. The next one comes on view."""
        order = [s.id for s in self.summaries]
        summary = self._summaries.pop(chat, None)
        if summary is None:
            return
        self._archive.set_deleted(chat, True)
        self._deleted.add(chat)
        gone = Deleted(summary, self._open.pop(chat, None))
        self.listed.emit()
        if self.current.id == chat:
            at = order.index(chat)
            rest = order[at + 1 :] or order[:at][-1:]
            if rest:
                self.show_chat(rest[0])
            else:
                self.show_new()
        self.deleted.emit(gone)

    def undelete(self, deleted: Deleted) -> None:
        chat = deleted.summary.id
        self._archive.set_deleted(chat, False)
        self._deleted.discard(chat)
        self._summaries[chat] = deleted.summary
        if deleted.chat is not None:
            self._open[chat] = deleted.chat
            self.save(deleted.chat, deleted.chat.turns.values())  # an answer went on meanwhile
        self.listed.emit()
        self.show_chat(chat)

    # --- own ------------------------------------------------------------------------

    def _opened(self, opened: Opened) -> None:
        self.lasting = opened.lasting
        # What was begun while the file was being opened counts more.
        self._summaries = {s.id: s for s in opened.chats} | self._summaries
        self.listed.emit()
        if opened.problem is not None:
            self.told.emit(opened.problem)
        if opened.last in self._summaries and self.current.blank:
            self.show_chat(opened.last)

    def _let_go(self) -> None:
        """Forget the turns of chats that were not looked at for long; the archive has them."""
        if not self.lasting:
            return
        for chat in [c for c in self._open if c != self.current.id and not self.held(c)][:-OPEN]:
            del self._open[chat]
