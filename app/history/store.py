"""One database of chats that is open. Whoever has it uses it on one thread."""

from __future__ import annotations

import logging
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Final

from app.conversation import UNNAMED, Conversation, End
from app.history import schema, text, words
from app.history.records import ChatRecord, Codec, Hit, Summary, TurnRecord
from app.markup import without_markup

_log = logging.getLogger(__name__)

MOST_HITS: Final = 60
"""Chats that a search gives at most."""

_TURN: Final = tuple(f.name for f in fields(TurnRecord))
_CHAT: Final = tuple(f.name for f in fields(ChatRecord))
_TURN_COLUMNS: Final = ", ".join(f'"{name}"' for name in _TURN)
_CHAT_COLUMNS: Final = ", ".join(_CHAT)

_PUT_TURN: Final = (
    f"INSERT INTO turns (chat, {_TURN_COLUMNS}) VALUES (?{', ?' * len(_TURN)}) "
    "ON CONFLICT (id) DO UPDATE SET chat = excluded.chat, "
    + ", ".join(f'"{name}" = excluded."{name}"' for name in _TURN if name != "id")
    + " RETURNING n"
)
_PUT_CHAT: Final = (
    f"INSERT INTO chats ({_CHAT_COLUMNS}) VALUES (?{', ?' * (len(_CHAT) - 1)}) "
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _CHAT if name != "id")
    + " RETURNING n"
)


class Store:
    """Methods raise `schema.FAULTS`; each that writes does it whole or not at all."""

    def __init__(self, connection: sqlite3.Connection, codec: Codec) -> None:
        self._connection, self._codec = connection, codec

    def close(self) -> None:
        self._connection.close()

    def mend(self) -> None:
        """Makes all indexes again: SQLite's quick check of a file passes over them."""
        self._connection.execute("REINDEX")
        words.make_again(self._connection)

    # --- chats ----------------------------------------------------------------------

    def summaries(self) -> tuple[Summary, ...]:
        """All chats that are not deleted, those used last first."""
        rows = self._connection.execute(
            "SELECT id, title, name <> '', pinned, created, used FROM chats "
            "WHERE deleted IS NULL ORDER BY used DESC"
        )
        found = []
        for id_, title, named, pinned, created, used in map(_read, rows):
            whole = isinstance(id_, str) and isinstance(title, str)
            if not whole or not all(isinstance(t, int | float) for t in (created, used)):
                _log.warning("A row of the list of chats cannot be read.")
                continue
            found.append(Summary(id_, title or UNNAMED, bool(named), bool(pinned), created, used))
        return tuple(found)

    def load(self, chat: str) -> tuple[Conversation | None, int]:
        """A chat with its turns, None where there is none; and how many rows were lost."""
        row = self._connection.execute(
            f"SELECT {_CHAT_COLUMNS} FROM chats WHERE id = ?", (chat,)
        ).fetchone()
        if row is None:
            return None, 0
        record = dict(zip(_CHAT, _read(row), strict=True))
        result = Conversation(
            id=chat,
            name=_or(record["name"], ""),
            pinned=bool(record["pinned"]),
            created=_or(record["created"], 0.0),
            used=_or(record["used"], 0.0),
            draft=_or(record["draft"], ""),
            options=_or(record["options"], ""),
            start=record["start"] if isinstance(record["start"], str) else None,
        )
        turns, lost = [], 0
        for values in self._turns_of(chat):
            try:
                turns.append(TurnRecord(*values).turn(self._codec) if values else None)
            except (TypeError, ValueError):
                turns.append(None)
        whole = [turn for turn in turns if turn is not None]
        lost = len(turns) - len(whole)
        if lost:
            _log.warning("%d of the messages of a chat cannot be read.", lost)
        result.adopt(whole)
        leaf = record["leaf"]
        if isinstance(leaf, str) and leaf in result.turns:
            result.leaf = leaf
        return result, lost

    def put(self, chat: ChatRecord, turns: Sequence[TurnRecord], gone: Iterable[str] = ()) -> None:
        """Keep a chat and those of its turns that changed; `gone` are ids of turns removed."""
        with self._change() as run:
            values = text.bound(_values(chat))
            n = run(_PUT_CHAT, values).fetchone()[0]
            run("DELETE FROM chat_words WHERE rowid = ?", (n,))
            run("INSERT INTO chat_words (rowid, title) VALUES (?, ?)", (n, _title_words(chat)))
            for id_ in gone:
                run(
                    "DELETE FROM turn_words WHERE rowid IN (SELECT n FROM turns WHERE id = ?)",
                    (id_,),
                )
                run("DELETE FROM turns WHERE id = ?", (id_,))
            for turn in turns:
                n = run(_PUT_TURN, (chat.id, *_bound(turn))).fetchone()[0]
                if turn.end != End.COMING:  # not each second of an answer that comes
                    run("DELETE FROM turn_words WHERE rowid = ?", (n,))
                    said = (n, text.indexed(turn.text))
                    run("INSERT INTO turn_words (rowid, text) VALUES (?, ?)", said)

    def set_deleted(self, chat: str, deleted: bool) -> None:
        """Out of the list and the search, or back; `purge` makes it final."""
        with self._change() as run:
            when = time.time() if deleted else None
            run("UPDATE chats SET deleted = ? WHERE id = ?", (when, chat))

    def purge(self) -> None:
        """What was deleted goes for good."""
        with self._change() as run:
            gone = "FROM chats WHERE deleted IS NOT NULL"
            turns = f"FROM turns WHERE chat IN (SELECT id {gone})"
            run(f"DELETE FROM turn_words WHERE rowid IN (SELECT n {turns})")
            run(f"DELETE {turns}")
            run(f"DELETE FROM chat_words WHERE rowid IN (SELECT n {gone})")
            run(f"DELETE {gone}")

    # --- notes ----------------------------------------------------------------------

    def note(self, name: str) -> str:
        row = self._connection.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        return _or(text.read(row[0]), "") if row else ""

    def set_note(self, name: str, value: str) -> None:
        with self._change() as run:
            run("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    # --- search ---------------------------------------------------------------------

    def search(self, query: str) -> tuple[Hit, ...]:
        """The chats that have all words of `query` in their title or in one message.

        The last word may go on. Titles come first, then those used last. Scripts without
        spaces are looked for as they are written, anywhere.
        """
        if not query.strip():
            return ()
        match = text.as_match(query)
        if text.has_unparted(query) or not match:
            titles, turns = self._like(text.as_like(query))
        else:
            titles, turns = self._match(match)
        by_chat: dict[str, tuple[int, int]] = {chat: (n, count) for chat, n, count in turns}
        order = list(dict.fromkeys([*titles, *by_chat]))[:MOST_HITS]
        excerpts = self._excerpts(query, match, [by_chat[c][0] for c in order if c in by_chat])
        return tuple(self._hits(order, by_chat, excerpts))

    def _match(self, match: str) -> tuple[list[str], list[tuple[str, int, int]]]:
        titles = self._connection.execute(
            "SELECT c.id FROM chat_words w JOIN chats c ON c.n = w.rowid "
            "WHERE chat_words MATCH ? AND c.deleted IS NULL ORDER BY c.used DESC LIMIT ?",
            (match, MOST_HITS),
        )
        turns = self._connection.execute(
            "SELECT t.chat, max(t.n), count(*) FROM turn_words w JOIN turns t ON t.n = w.rowid "
            "JOIN chats c ON c.id = t.chat WHERE turn_words MATCH ? AND c.deleted IS NULL "
            "GROUP BY t.chat ORDER BY c.used DESC LIMIT ?",
            (match, MOST_HITS),
        )
        return [row[0] for row in titles], list(turns)

    def _like(self, like: str) -> tuple[list[str], list[tuple[str, int, int]]]:
        titles = self._connection.execute(
            "SELECT c.id FROM chat_words w JOIN chats c ON c.n = w.rowid "
            r"WHERE w.title LIKE ? ESCAPE '\' AND c.deleted IS NULL ORDER BY c.used DESC LIMIT ?",
            (like, MOST_HITS),
        )
        turns = self._connection.execute(
            "SELECT t.chat, max(t.n), count(*) FROM turn_words w JOIN turns t ON t.n = w.rowid "
            r"JOIN chats c ON c.id = t.chat WHERE w.text LIKE ? ESCAPE '\' "
            "AND c.deleted IS NULL GROUP BY t.chat ORDER BY c.used DESC LIMIT ?",
            (like, MOST_HITS),
        )
        return [row[0] for row in titles], list(turns)

    def _excerpts(self, query: str, match: str, rows: list[int]) -> dict[int, tuple[str, str]]:
        """By row: the turn's id, and what is around what was found."""
        marks = ", ".join("?" * len(rows))
        if text.has_unparted(query) or not match:
            found = self._connection.execute(
                f"SELECT w.rowid, t.id, w.text FROM turn_words w JOIN turns t ON t.n = w.rowid "
                f"WHERE w.rowid IN ({marks})",
                rows,
            )
            return {n: (id_, _around(str(whole), query.strip())) for n, id_, whole in found}
        found = self._connection.execute(
            "SELECT w.rowid, t.id, snippet(turn_words, 0, ?, ?, '…', 14) "
            "FROM turn_words w JOIN turns t ON t.n = w.rowid "
            f"WHERE turn_words MATCH ? AND w.rowid IN ({marks})",
            [Hit.START, Hit.STOP, match, *rows],
        )
        return {n: (id_, _line(str(excerpt))) for n, id_, excerpt in found}

    def _hits(
        self,
        chats: list[str],
        by_chat: dict[str, tuple[int, int]],
        excerpts: dict[int, tuple[str, str]],
    ) -> Iterator[Hit]:
        marks = ", ".join("?" * len(chats))
        rows = self._connection.execute(
            f"SELECT id, title, pinned, used FROM chats WHERE id IN ({marks})", chats
        )
        known = {row[0]: row[1:] for row in map(_read, rows)}
        for chat in chats:
            title, pinned, used = known[chat]
            n, count = by_chat.get(chat, (0, 0))
            turn, excerpt = excerpts.get(n, (None, ""))
            yield Hit(chat, title or UNNAMED, bool(pinned), used, turn, excerpt, count)

    # --- own ------------------------------------------------------------------------

    def _turns_of(self, chat: str) -> list[tuple[Any, ...] | None]:
        """The rows of a chat in order; None for each that the database cannot give."""
        query = f"SELECT {_TURN_COLUMNS} FROM turns"
        try:
            rows = self._connection.execute(f"{query} WHERE chat = ? ORDER BY place, n", (chat,))
            return [_read(row) for row in rows]
        except schema.FAULTS:
            _log.warning("A part of a chat cannot be read; its messages are read one by one.")
        numbers = self._connection.execute(
            "SELECT n FROM turns INDEXED BY turns_of_chat WHERE chat = ? ORDER BY place", (chat,)
        )
        result: list[tuple[Any, ...] | None] = []
        for (n,) in numbers.fetchall():
            try:
                row = self._connection.execute(f"{query} WHERE n = ?", (n,)).fetchone()
            except schema.FAULTS:
                row = None
            result.append(_read(row) if row else None)
        return result

    def _change(self) -> _Change:
        return _Change(self._connection)


class _Change:
    """A transaction: whole, or not at all."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> Any:
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection.execute

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._connection.execute("COMMIT")
        elif self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _values(record: ChatRecord | TurnRecord) -> list[object]:
    return [getattr(record, f.name) for f in fields(record)]


def _bound(turn: TurnRecord) -> list[object]:
    return text.bound(_values(turn))


def _read(row: Sequence[object]) -> tuple[Any, ...]:
    return tuple(map(text.read, row))


def _or(value: object, default: Any) -> Any:
    fits = isinstance(value, int | float) if isinstance(default, float) else type(value) is str
    return value if fits else default


def _title_words(chat: ChatRecord) -> str:
    return text.indexed(chat.title if chat.title != UNNAMED else chat.name)


def _around(whole: str, query: str) -> str:
    """Where `query` stands in a text, with a little around it."""
    found = re.search(re.escape(query), whole, re.IGNORECASE)
    if not found:
        return _line(whole[:80])
    start, stop = max(0, found.start() - 24), found.end()
    before, after = whole[start : found.start()], whole[stop : stop + 40]
    head = f"{'…' if start else ''}{before}{Hit.START}{found[0]}{Hit.STOP}{after}"
    return _line(f"{head}{'…' if stop + 40 < len(whole) else ''}")


def _line(excerpt: str) -> str:
    return " ".join(without_markup(excerpt).split())
