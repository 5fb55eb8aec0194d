"""History for the window: what its thread found comes back on the main thread.

Nothing here waits. What could not be kept is told once, and tried again until it is.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any, Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.conversation import Conversation, Turn
from app.errors import EngineError, SlipstreamError
from app.history import History, Hit, Opened

AGAIN_MS: Final = 5_000
"""Until what could not be kept is tried again."""

_log = logging.getLogger(__name__)

Then = Callable[[], None]


@dataclass(slots=True)
class _Unkept:
    """The ids of turns of a chat that changed or went: what it has of them when it is written
    is kept, and the others are gone. So what was undone meanwhile is there again."""

    chat: Conversation
    turns: dict[str, None] = field(default_factory=dict)  # in the order in which they came


class Archive(QObject):
    """Without a `history` nothing is kept, and everything goes on."""

    opened = Signal(object)  # Opened
    failed = Signal(object)  # SlipstreamError
    kept_again = Signal()  # what had failed to be kept is kept now
    _done = Signal(object)  # a future

    def __init__(self, history: History | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._history = history
        self._unkept: dict[str, _Unkept] = {}
        self._open: dict[Future[Any], Callable[[Future[Any]], None]] = {}  # what takes the result
        self._again = QTimer(self, interval=AGAIN_MS, singleShot=True)
        self._again.timeout.connect(self._keep_again)
        self._done.connect(self._finish)

    def open(self) -> None:
        if self._history is None:
            self.opened.emit(Opened(lasting=False))
        else:
            self._call(self._history.open(), self.opened.emit)

    def load(self, chat: str, then: Callable[[Conversation | None, int], None]) -> None:
        if self._history is not None:
            self._call(self._history.load(chat), lambda found: then(*found))

    def save(
        self,
        chat: Conversation,
        turns: Iterable[Turn] = (),
        gone: Iterable[str] = (),
        then: Then | None = None,
    ) -> None:
        """`then` is called when it is kept, or cannot be."""
        if self._history is None:
            if then is not None:
                then()
            return
        wanted = self._unkept.pop(chat.id, None) or _Unkept(chat)
        wanted.turns |= dict.fromkeys([turn.id for turn in turns]) | dict.fromkeys(gone)
        there = [chat.turns[id_] for id_ in wanted.turns if id_ in chat.turns]
        future = self._history.save(chat, there, wanted.turns.keys() - chat.turns.keys())
        self._done_with(future, lambda f: self._saved(f, wanted, then))

    def unkept(self, chat: str) -> bool:
        """Whether there is more of a chat than could be kept."""
        return chat in self._unkept

    def set_deleted(self, chat: str, deleted: bool) -> None:
        if self._history is not None:
            self._call(self._history.set_deleted(chat, deleted))

    def remember(self, chat: str) -> None:
        if self._history is not None:
            self._call(self._history.remember(chat))

    def search(self, query: str, then: Callable[[tuple[Hit, ...]], None]) -> None:
        if self._history is not None:
            self._call(self._history.search(query), then)

    def close(self) -> None:
        """After everything that was asked for; what failed before is tried once more."""
        if self._history is not None:
            for future in list(self._open):
                wait([future])
                self._finish(future)
            self._keep_again()
            self._again.stop()
            self._history.close()
            self._history = None

    # --- own ------------------------------------------------------------------------

    def _saved(self, future: Future[None], wanted: _Unkept, then: Then | None) -> None:
        error = future.exception()
        if error is None:
            if not self._unkept and self._again.isActive():
                self._again.stop()
                self.kept_again.emit()
        else:
            known = self._unkept.setdefault(wanted.chat.id, wanted)
            if known is not wanted:
                known.turns |= wanted.turns
            if not self._again.isActive():
                self.failed.emit(_told(error))
            self._again.start()
        if then is not None:
            then()

    def _keep_again(self) -> None:
        waiting, self._unkept = self._unkept, {}
        for wanted in waiting.values():
            self._again.start()  # until it is kept
            self.save(wanted.chat, gone=wanted.turns)

    def _call(self, future: Future[Any], success: Callable[[Any], None] | None = None) -> None:
        def ended(done: Future[Any]) -> None:
            if (error := done.exception()) is not None:
                self.failed.emit(_told(error))
            elif success is not None:
                success(done.result())

        self._done_with(future, ended)

    def _done_with(self, future: Future[Any], ended: Callable[[Future[Any]], None]) -> None:
        def tell(done: Future[Any]) -> None:
            with contextlib.suppress(RuntimeError):  # the window has gone
                self._done.emit(done)

        self._open[future] = ended
        future.add_done_callback(tell)

    def _finish(self, done: Future[Any]) -> None:
        if (ended := self._open.pop(done, None)) is not None:
            ended(done)


def _told(error: BaseException) -> SlipstreamError:
    if isinstance(error, SlipstreamError):
        return error
    _log.error("The chats: %s", error, exc_info=error)
    return EngineError(f"Something went wrong: {error}.", remedy="The log has the details.")
