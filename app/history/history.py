"""The chats on disk, for whoever must not wait for a disk.

DESIGN. One thread has the database, and nobody else: whatever is asked for is queued and
done in that order, so that what is read is what was written before, and there is one
writer. Every method returns at once with a future. What is handed over are frozen records,
made on the caller's thread; what comes back is the caller's own. The file is opened by the
first job, `open`. Errors of the database become `HistoryError` here.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from app.conversation import Conversation, Turn
from app.errors import HistoryError
from app.history import rescue, schema
from app.history.records import ChatRecord, Codec, Hit, Opened, TurnRecord
from app.history.store import Store

T = TypeVar("T")

_LAST = "last"

_log = logging.getLogger(__name__)


class History:
    """`codec` says how figures of answers are kept. `close` ends the thread."""

    def __init__(self, path: Path, codec: Codec | None = None) -> None:
        self.path = path
        self._codec = codec or Codec()
        self._store: Store | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="history")

    def open(self) -> Future[Opened]:
        """Comes first. What is wrong with the file is told in its result."""
        return self._thread.submit(self._open)

    def load(self, chat: str) -> Future[tuple[Conversation | None, int]]:
        """A chat with its turns (None: there is none), and how many rows were lost."""
        return self._submit(lambda store: store.load(chat))

    def save(
        self, chat: Conversation, turns: Iterable[Turn] = (), gone: Iterable[str] = ()
    ) -> Future[None]:
        """Keep what is known of a chat, those of its turns, and that others are gone."""
        record = ChatRecord.of(chat)
        rows = [TurnRecord.of(turn, self._codec) for turn in turns]
        return self._submit(partial(_put, record=record, turns=rows, gone=tuple(gone)))

    def set_deleted(self, chat: str, deleted: bool) -> Future[None]:
        """Until the next `open` it can be undone."""
        return self._submit(lambda store: store.set_deleted(chat, deleted))

    def remember(self, chat: str) -> Future[None]:
        """Which chat is on view."""
        return self._submit(lambda store: store.set_note(_LAST, chat))

    def search(self, query: str) -> Future[tuple[Hit, ...]]:
        return self._submit(lambda store: store.search(query))

    def close(self) -> None:
        """Everything that was asked for is done first."""
        self._thread.submit(self._close)
        self._thread.shutdown()

    # --- the thread ---------------------------------------------------------------

    def _open(self) -> Opened:
        opening = rescue.open_database(self.path)
        store = self._store = Store(opening.connection, self._codec)
        problem = opening.problem
        try:
            if opening.lasting:
                self._run(Store.purge)
        except HistoryError as error:  # as on a full disk; those that stay are there all the same
            problem = problem or error
        try:
            chats, last = store.summaries(), store.note(_LAST)
            if opening.lasting and chats:
                with contextlib.suppress(RuntimeError):  # it is to close already
                    self._thread.submit(rescue.back_up, opening.connection, self.path)
        except schema.FAULTS as error:
            problem = problem or _told(error)
            chats, last = (), ""
        return Opened(chats, last, problem, opening.lasting)

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()

    def _submit(self, operation: Callable[[Store], T]) -> Future[T]:
        return self._thread.submit(self._run, operation)

    def _run(self, operation: Callable[[Store], T]) -> T:
        if self._store is None:
            raise HistoryError("The chats are not open.", remedy="Start Slipstream again.")
        try:
            return operation(self._store)
        except schema.FAULTS as error:
            if not _contradicts(error):
                raise _told(error) from error
            _log.warning("The indexes of the chats are made again: %s", str(error))
        try:  # here, because an error that is handled holds the statements it came from
            self._store.mend()
            return operation(self._store)
        except schema.FAULTS as error:
            raise _told(error) from error


def _put(
    store: Store, *, record: ChatRecord, turns: Sequence[TurnRecord], gone: Sequence[str]
) -> None:
    store.put(record, turns, gone)


def _contradicts(error: Exception) -> bool:
    """Whether it tells of what is in the file, and not of the disk or of another program."""
    if isinstance(error, sqlite3.OperationalError):
        return "vtable" in str(error)
    return isinstance(error, sqlite3.DatabaseError)


def _told(error: Exception) -> HistoryError:
    _log.warning("The database of chats: %s", error)
    return HistoryError(
        f"A chat cannot be kept or read ({error}).",
        remedy="Check the free disk space; it is tried again.",
    )
