"""The index of words: made of what chats and turns hold, so that it can be made again."""

from __future__ import annotations

import sqlite3

from app.history import text

_OF = (("chat_words", "title", "chats"), ("turn_words", "text", "turns"))

_EMPTY = """
    BEGIN IMMEDIATE;
    DROP TABLE chat_words;
    DROP TABLE turn_words;
    CREATE VIRTUAL TABLE chat_words USING fts5(title, tokenize='unicode61 remove_diacritics 2');
    CREATE VIRTUAL TABLE turn_words USING fts5(
        text, tokenize='unicode61 remove_diacritics 2', prefix='1 2 3'
    );
"""


def fill(connection: sqlite3.Connection) -> None:
    """Into an empty one, within a transaction."""
    for words, column, table in _OF:
        for n, value in connection.execute(f"SELECT n, {column} FROM {table}").fetchall():
            value = text.read(value)
            if isinstance(value, str):
                put = f"INSERT INTO {words} (rowid, {column}) VALUES (?, ?)"
                connection.execute(put, (n, text.indexed(value)))


def make_again(connection: sqlite3.Connection) -> None:
    """In place of one that is damaged, whole or not at all."""
    try:
        connection.executescript(_EMPTY)
        fill(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
