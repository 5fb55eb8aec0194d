"""The tables of the database, and how an older file gets them.

Each migration leads from one version to the next; `PRAGMA user_version` says which one a
file has, `PRAGMA application_id` that it is ours.

Text is TEXT, but for text that holds half a surrogate pair, which no UTF-8 has: that is a
BLOB of its surrogates passed through. `text.stored` and `text.read` do both.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Final

APPLICATION: Final = 0x536C6970  # "Slip"

MIGRATIONS: Final[tuple[str, ...]] = (
    # 1: chats, their turns, and the words of both for the search
    """
    CREATE TABLE chats (
        n        INTEGER PRIMARY KEY,
        id       TEXT NOT NULL UNIQUE,
        title    TEXT NOT NULL DEFAULT '',
        name     TEXT NOT NULL DEFAULT '',
        pinned   INTEGER NOT NULL DEFAULT 0,
        created  REAL NOT NULL,
        used     REAL NOT NULL,
        deleted  REAL,
        leaf     TEXT,
        draft    TEXT NOT NULL DEFAULT '',
        options  TEXT NOT NULL DEFAULT '',
        start    TEXT
    );
    CREATE TABLE turns (
        n          INTEGER PRIMARY KEY,
        id         TEXT NOT NULL UNIQUE,
        chat       TEXT NOT NULL,
        parent     TEXT,
        place      INTEGER NOT NULL,
        role       TEXT NOT NULL,
        text       TEXT NOT NULL DEFAULT '',
        reasoning  TEXT NOT NULL DEFAULT '',
        created    REAL NOT NULL,
        thought_ms INTEGER NOT NULL DEFAULT 0,
        "end"      TEXT NOT NULL DEFAULT '',
        context    INTEGER NOT NULL DEFAULT 0,
        error      TEXT,
        figures    TEXT
    );
    CREATE INDEX turns_of_chat ON turns (chat, place);
    CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE VIRTUAL TABLE chat_words USING fts5(title, tokenize='unicode61 remove_diacritics 2');
    CREATE VIRTUAL TABLE turn_words USING fts5(
        text, tokenize='unicode61 remove_diacritics 2', prefix='2 3'
    );
    """,
    # 2: the first letter of a word is looked up too, in place of gathering all that begin so
    """
    CREATE VIRTUAL TABLE words_by_letter USING fts5(
        text, tokenize='unicode61 remove_diacritics 2', prefix='1 2 3'
    );
    INSERT INTO words_by_letter (rowid, text) SELECT rowid, text FROM turn_words;
    DROP TABLE turn_words;
    ALTER TABLE words_by_letter RENAME TO turn_words;
    """,
)

VERSION: Final = len(MIGRATIONS)

TABLES: Final = ("chats", "turns", "notes", "chat_words", "turn_words")

FAULTS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file raises. Python reads SQLite's own messages and the names of columns as
UTF-8, and both may quote what the damage made of the schema."""

_OF_DISK: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)


def is_of_disk(error: Exception) -> bool:
    """Whether a fault tells of the disk, on which the file may be as whole as ever."""
    code = getattr(error, "sqlite_errorcode", 0)
    # A file that is shorter than it says is damaged.
    return code & 0xFF in _OF_DISK and code != sqlite3.SQLITE_IOERR_SHORT_READ


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def is_ours(connection: sqlite3.Connection) -> bool:
    """Whether it is ours, or nobody's yet."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application == APPLICATION:
        return True
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return bool(application == 0 and tables == 0)


def is_whole(connection: sqlite3.Connection) -> bool:
    """Whether the tables have the columns of their version: a name that damage changed passes
    SQLite's own checks."""
    of = version(connection)
    if of < 0 or (of == 0 and any(_columns(connection, t) for t in TABLES)):
        return False
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as sound:
        _migrate(sound, of)
        return all(_columns(sound, t) <= _columns(connection, t) for t in TABLES)


def _columns(connection: sqlite3.Connection, table: str) -> set[object]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def migrate(connection: sqlite3.Connection) -> None:
    """Bring it to `VERSION`, each step whole or not at all."""
    _migrate(connection, VERSION)


def _migrate(connection: sqlite3.Connection, to: int) -> None:
    for step in range(version(connection), to):
        script = f"""
            BEGIN IMMEDIATE;
            {MIGRATIONS[step]}
            PRAGMA application_id = {APPLICATION};
            PRAGMA user_version = {step + 1};
            COMMIT;
        """
        try:
            connection.executescript(script)
        except FAULTS:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
