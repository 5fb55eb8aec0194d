"""Opening the file of chats, whatever state it is in.

What cannot be used as it is is copied beside it under a name that says why, and what can
be read of it goes into a new file under the usual name. Nothing half-written has that
name at any time.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.errors import HistoryError, SlipstreamError
from app.history import schema, text, words

_log = logging.getLogger(__name__)

_HEAD: Final = b"SQLite format 3\0"
_BESIDE: Final = ("-wal", "-shm")

_MOST_PROBES: Final = 100_000
"""Rows that are asked for one by one where a page between them is damaged."""

_TABLES: Final = ("chats", "turns", "notes")

BACKUP_DAYS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Opening:
    """`lasting` is False where what is written goes with the process."""

    connection: sqlite3.Connection
    problem: SlipstreamError | None = None
    lasting: bool = True


def open_database(path: Path) -> Opening:
    """A connection to the chats in `path`, at the newest version; never raises for the file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        why, remedy = _trouble(path)
        if why == "read-only" and not os.access(path.parent, os.W_OK):
            return _in_memory(path, f"The chats in `{path.parent}` can only be read.")
        if why == "busy":
            return _in_memory(path, f"Another program uses `{path}`.")
        problem = _replace(path, why, remedy) if why else None
        connection = _ready(path)
        return Opening(connection, _take_in(path, connection) or problem)
    except (OSError, *schema.FAULTS) as error:
        _log.warning("The chats cannot be kept.", exc_info=error)
        return _in_memory(path, f"Chats cannot be kept in `{path}` ({error}).")


def back_up(connection: sqlite3.Connection, path: Path) -> None:
    """A copy beside the file once a day, for a day on which the file is damaged."""
    place = backup_of(path)
    try:
        # One that was made while the clock was ahead counts for no later day.
        if 0 <= time.time() - place.stat().st_mtime < BACKUP_DAYS * 86_400:
            return
    except OSError:
        pass  # there is none
    part = place.with_suffix(".part")
    try:
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(part)) as copy:
            connection.backup(copy)
        part.replace(place)
    except (OSError, *schema.FAULTS) as error:
        _log.warning("The chats could not be copied to `%s`: %s", place, error)
        part.unlink(missing_ok=True)


def backup_of(path: Path) -> Path:
    return path.with_name(f"{path.stem}.backup{path.suffix}")


# --- what is wrong ------------------------------------------------------------------------


def _trouble(path: Path) -> tuple[str, str]:
    """A word for what is wrong with the file and a sentence for the user; empty if nothing."""
    if not path.exists() or path.stat().st_size == 0:
        return "", ""
    with path.open("rb") as file:
        if file.read(len(_HEAD)) != _HEAD:
            return "damaged", "is no database any more"
    try:
        with closing(_connect(path)) as connection:
            if not schema.is_ours(connection):
                return "foreign", "is another program's database"
            if schema.version(connection) > schema.VERSION:
                return "newer", "was written by a newer Slipstream"
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found is None or found[0] != "ok" or not schema.is_whole(connection):
                return "damaged", "is damaged"
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        told = str(error)
        if "readonly" in told or not os.access(path, os.W_OK):
            return "read-only", "can only be read"
        if "locked" in told:
            return "busy", ""
        if schema.is_of_disk(error):
            raise
        return "damaged", "is damaged"
    except schema.FAULTS:
        return "damaged", "is damaged"
    if not os.access(path, os.W_OK):
        return "read-only", "can only be read"
    return "", ""


def _replace(path: Path, why: str, what: str) -> SlipstreamError:
    """Set `path` aside and put in its place a file with what can be read of it."""
    aside = _aside(path, why)
    part = path.with_name(f"{path.name}.part")
    try:
        _copy(path, aside)
        _remove(part)
        with closing(_ready(part)) as connection:
            saved = _fill(connection, path, aside, why)
            # into one file, so that it can be renamed
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode = DELETE")
    except BaseException:  # as on a full disk, which they would fill again at each start
        for made in (part, aside):
            with contextlib.suppress(OSError):
                _remove(made)
        raise
    for suffix in _BESIDE:
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    part.replace(path)
    _log.warning("`%s` %s; it is kept as `%s`. %s", path, what, aside, saved)
    saved = saved or "The list of chats begins anew."
    remedy = {
        "newer": "Start that version again: it takes them into the list.",
        "foreign": "Move it where it belongs.",
    }.get(why, "Nothing is to be done.")
    message = f"The file of chats {what}. {saved} The old one is kept as `{aside}`."
    return HistoryError(message, remedy=remedy)


def _take_in(path: Path, into: sqlite3.Connection) -> SlipstreamError | None:
    """Chats that were set aside as a newer version's, once this one can read them; told then.

    Begun again where it was killed: what is there already stays as it is.
    """
    told = None
    for file in sorted(path.parent.glob(f"{glob.escape(path.stem)}.newer-*{path.suffix}")):
        try:
            if _trouble(file)[0]:
                continue  # still newer, or no longer whole
            with closing(_ready(file)) as newer:
                for table in ("chats", "turns"):
                    _take(newer, into, table)
            words.make_again(into)
            taken = _aside(path, "taken")
            file.replace(taken)
        except (OSError, *schema.FAULTS) as error:  # the next start tries again
            _log.warning("The chats in `%s` cannot be taken in: %s", file, error)
            if into.in_transaction:
                into.execute("ROLLBACK")
            continue
        message = "The chats that a newer Slipstream wrote are in the list again."
        told = HistoryError(
            f"{message} Their file is kept as `{taken}`.", remedy="Nothing is to be done."
        )
        _log.info("%s", told)
    return told


def _fill(into: sqlite3.Connection, path: Path, aside: Path, why: str) -> str:
    """What can be read of the file that was set aside, and a sentence of that."""
    if why == "damaged":
        return _salvage((aside, backup_of(path)), into)
    if why == "read-only":
        with closing(_connect(aside, immutable=not os.access(aside, os.W_OK))) as old:
            old.backup(into)
        return "All chats are here."
    return ""


def _in_memory(path: Path, why: str) -> Opening:
    """The chats as far as they can be read, and a place for new ones until the end."""
    connection = _prepared(sqlite3.connect(":memory:", isolation_level=None))
    try:
        schema.migrate(connection)
        if path.exists():
            with closing(_connect(path, immutable=True)) as old:
                if schema.is_ours(old) and schema.version(old) <= schema.VERSION:
                    old.backup(connection)
        schema.migrate(connection)
    except (OSError, *schema.FAULTS) as error:
        _log.warning("The chats cannot be read either.", exc_info=error)
        connection.close()
        connection = _prepared(sqlite3.connect(":memory:", isolation_level=None))
        schema.migrate(connection)
    problem = HistoryError(
        f"{why} What is written now stays until the window is closed.",
        remedy="Check the folder's permissions and the free disk space, and start again.",
    )
    return Opening(connection, problem, lasting=False)


# --- salvage ------------------------------------------------------------------------------


def _salvage(sources: tuple[Path, ...], into: sqlite3.Connection) -> str:
    """Copy what can be read, each row for itself; an earlier source counts more."""
    for source in sources:
        if not source.exists():
            continue
        with tempfile.TemporaryDirectory(prefix="slipstream-") as folder:
            copy = Path(folder, source.name)
            _copy(source, copy)  # what is set aside stays as it was
            with closing(_connect(copy)) as damaged:
                # With it, SQLite reads a file that is shorter than it should be.
                damaged.execute("PRAGMA writable_schema = ON")
                for table in _TABLES:
                    try:
                        _take(damaged, into, table)
                    except schema.FAULTS as error:
                        if schema.is_of_disk(error):  # else less than all would be taken for it
                            raise
                        _log.warning("Nothing can be read of `%s`: %s", table, error)
                        if into.in_transaction:
                            into.execute("COMMIT")
    _give_chats(into)
    into.execute("BEGIN")
    words.fill(into)
    into.execute("COMMIT")
    chats = into.execute("SELECT count(*) FROM chats").fetchone()[0]
    turns = into.execute("SELECT count(*) FROM turns").fetchone()[0]
    if not chats:
        return ""
    return f"{chats} chats with {turns} messages could be read and are here."


def _take(damaged: sqlite3.Connection, into: sqlite3.Connection, table: str) -> None:
    there = [row[1] for row in damaged.execute(f"PRAGMA table_info({table})")]
    known = [row[1] for row in into.execute(f"PRAGMA table_info({table})")]
    names = [name for name in known if name in there and name != "n"]
    if not names:
        return
    columns = ", ".join(f'"{name}"' for name in names)
    marks = ", ".join("?" * len(names))
    put = f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})"
    into.execute("BEGIN")
    rows = (
        _all_rows(damaged, table, columns) if table != "notes" else _scan(damaged, table, columns)
    )
    for row in rows:
        try:
            into.execute(put, text.bound(row))
        except schema.FAULTS as error:  # NULL where there must be something, …
            if schema.is_of_disk(error):
                raise
            _log.warning("A row of `%s` is lost: %s", table, error)
    into.execute("COMMIT")


def _scan(damaged: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[object, ...]]:
    try:
        yield from damaged.execute(f"SELECT {columns} FROM {table}")
    except schema.FAULTS as error:
        _log.warning("Rows of `%s` are lost: %s", table, error)


def _all_rows(
    damaged: sqlite3.Connection, table: str, columns: str
) -> Iterator[tuple[object, ...]]:
    """From the beginning to the first page that is damaged, from the end back to the last one,
    and what there is between them row by row."""
    first_bad = last_bad = 0
    for order, compare in (("ASC", ">"), ("DESC", "<")):
        at: int | None = None
        try:
            rows = damaged.execute(
                f"SELECT n, {columns} FROM {table} NOT INDEXED "
                + (f"WHERE n > {first_bad} " if compare == "<" and first_bad else "")
                + f"ORDER BY n {order}"
            )
            for n, *values in rows:
                if not isinstance(n, int):
                    continue
                at = n
                yield tuple(values)
        except schema.FAULTS as error:
            _log.warning("Rows of `%s` are lost: %s", table, error)
            if order == "ASC":
                first_bad = at or 0
                continue
            last_bad = at or first_bad + _MOST_PROBES
            break
        return  # all rows came
    for n in range(first_bad + 1, min(last_bad, first_bad + _MOST_PROBES)):
        try:
            row = damaged.execute(f"SELECT {columns} FROM {table} WHERE n = ?", (n,)).fetchone()
        except schema.FAULTS:
            continue
        if row is not None:
            yield tuple(row)


def _give_chats(into: sqlite3.Connection) -> None:
    """Turns whose chat is lost get one, or nobody would ever see them."""
    into.execute(
        "INSERT OR IGNORE INTO chats (id, title, created, used) "
        "SELECT chat, 'Recovered chat', min(created), max(created) FROM turns "
        "WHERE chat NOT IN (SELECT id FROM chats) AND typeof(created) = 'real' GROUP BY chat"
    )


# --- files --------------------------------------------------------------------------------


def _connect(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?{'immutable=1' if immutable else 'mode=rw'}"
    return _prepared(sqlite3.connect(address, uri=True, timeout=2.0, isolation_level=None))


def _ready(path: Path) -> sqlite3.Connection:
    """To write: the file is made where there is none, and brought to the newest version."""
    connection = _prepared(sqlite3.connect(path, timeout=5.0, isolation_level=None))
    try:
        # A commit outlives the process at once, and the machine within moments.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        schema.migrate(connection)
    except schema.FAULTS:
        connection.close()
        raise
    return connection


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.text_factory = text.decoded
    return connection


def _aside(path: Path, why: str) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for n in range(1, 1000):
        more = f"-{n}" if n > 1 else ""
        place = path.with_name(f"{path.stem}.{why}-{stamp}{more}{path.suffix}")
        if not place.exists():
            return place
    raise OSError(f"too many files like {place.name}")


def _copy(path: Path, to: Path) -> None:
    for suffix in ("", _BESIDE[0]):
        source = Path(f"{path}{suffix}")
        if source.exists():
            shutil.copyfile(source, f"{to}{suffix}")


def _remove(path: Path) -> None:
    for suffix in ("", *_BESIDE):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
