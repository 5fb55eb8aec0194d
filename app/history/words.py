"""The index of words: made of what chats and turns hold, so that it can be made again."""

from __future__ import annotations

import sqlite3

from app.history import text

_OF = (("chat_words", "title", "chats"), ("turn_words", "text", "turns"))


def fill(connection: sqlite3.Connection) -> None:
    """Into an empty one, within a transaction."""
    for words, column, table in _OF:
        for n, value in connection.execute(f"SELECT n, {column} FROM {table}").fetchall():
            value = text.read(value)
            if isinstance(value, str):
                put = f"INSERT INTO {words} (rowid, {column}) VALUES (?, ?)"
                connection.execute(put, (n, text.indexed(value)))


def make_again(connection: sqlite3.Connection) -> None:
    """In place of one that is damaged, whole or not at all. Raises one of `schema.FAULTS`."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        for words, _, _ in _OF:
            made = "SELECT sql FROM sqlite_master WHERE name = ?"
            row = connection.execute(made, (words,)).fetchone()
            if row is None or row[0] is None:
                raise sqlite3.DatabaseError(f"the table {words} is gone")
            connection.execute(f"DROP TABLE {words}")
            connection.execute(row[0])
        fill(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
