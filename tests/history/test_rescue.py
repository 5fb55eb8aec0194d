"""A file of chats in any state: it opens, nothing of it is destroyed, what can be read is there."""

from __future__ import annotations

import errno
import os
import random
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.conversation import Conversation, End
from app.errors import HistoryError
from app.history import History, Opened, rescue, schema
from app.history.store import Store

CHATS, EXCHANGES = 6, 20


@pytest.fixture(scope="module")
def kept_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With some chats, closed in order."""
    path = tmp_path_factory.mktemp("kept") / "chats.db"
    with closing(History(path)) as history:
        history.open()
        for n in range(CHATS):
            chat = Conversation(name=f"Chat {n}", used=float(n))
            for i in range(EXCHANGES):
                answer = chat.answer(chat.ask(f"Question {n}/{i}"))
                answer.text, answer.end = f"Answer {n}/{i}. " + "Words of it. " * 30, End.DONE
            history.save(chat, chat.turns.values()).result()
    return path


@pytest.fixture(scope="module")
def kept(kept_file: Path) -> bytes:
    return kept_file.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


def read(path: Path) -> tuple[Opened, list[str]]:
    """What opening tells, and all texts that are there."""
    with closing(History(path)) as history:
        opened = history.open().result()
        texts = []
        for summary in opened.chats:
            chat, _ = history.load(summary.id).result()
            assert chat is not None
            texts += [t.text for t in chat.turns.values()]
        new = Conversation()  # and it works on
        new.answer(new.ask("New?")).end = End.DONE
        history.save(new, new.turns.values()).result()
        assert history.search("New").result()
    return opened, texts


def aside(path: Path, why: str) -> Path:
    (found,) = path.parent.glob(f"chats.{why}-*.db")
    return found


def told(opened: Opened) -> str:
    assert isinstance(opened.problem, HistoryError)
    return opened.problem.message


def test_what_is_whole_is_opened_as_it_is(path: Path, kept: bytes) -> None:
    path.write_bytes(kept)
    opened, texts = read(path)
    assert (opened.problem, opened.lasting) == (None, True)
    assert len(texts) == CHATS * EXCHANGES * 2
    assert not list(path.parent.glob("chats.*-*"))


@pytest.mark.parametrize("size", [0.3, 0.6, 0.9])
def test_one_that_is_cut_gives_what_is_left(path: Path, kept: bytes, size: float) -> None:
    damaged = kept[: int(len(kept) * size)]
    path.write_bytes(damaged)
    opened, texts = read(path)
    assert "damaged" in told(opened)
    assert opened.lasting
    assert aside(path, "damaged").read_bytes() == damaged
    assert str(aside(path, "damaged")) in told(opened)
    if size > 0.8:
        assert len(texts) > CHATS * EXCHANGES
        assert "could be read" in told(opened)


@pytest.mark.parametrize("fill", [b"\0", b"\xff"])
def test_a_page_that_is_lost_costs_its_rows(path: Path, kept: bytes, fill: bytes) -> None:
    with_text = kept.index(b"Answer 3/7.") // 4096 * 4096
    path.write_bytes(kept[:with_text] + fill * 4096 + kept[with_text + 4096 :])
    opened, texts = read(path)
    assert "damaged" in told(opened)
    assert CHATS * EXCHANGES * 2 - 40 < len(texts) < CHATS * EXCHANGES * 2
    assert any("5/19" in text for text in texts)


@pytest.mark.parametrize("content", [b"\0" * 40_000, b"{}", b"\0SQLite format 3", b"x" * 100])
def test_one_that_is_no_database_any_more(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    opened, texts = read(path)
    assert "no database any more" in told(opened)
    assert not texts
    assert aside(path, "damaged").read_bytes() == content


@pytest.mark.parametrize(
    ("sound", "damaged"),
    [
        (b"CREATE TABLE turns", b"CREATE TABLE tu\xf1ns"),
        (b"CREATE TABLE turns", b"CREATE T\xf1BLE turns"),
        (b"tableturns", b"tablet\xf1rns"),
        (b"reasoning  TEXT", b"reas\xf1ning  TEXT"),
        (b"reasoning  TEXT", b"seasoning  TEXT"),
        (b"CREATE INDEX turns_of_chat", b"CREATE INDEX turns_of_\xff\xfe\xfd\xfc"),
    ],
)
def test_a_schema_with_other_names_is_damage(
    path: Path, kept: bytes, sound: bytes, damaged: bytes
) -> None:
    """Also where it is no UTF-8: SQLite quotes it in messages that Python cannot read then."""
    assert sound in kept
    path.write_bytes(kept.replace(sound, damaged))
    opened, _ = read(path)
    assert "damaged" in told(opened)
    assert opened.lasting
    assert aside(path, "damaged").exists()


@pytest.mark.parametrize("version", [0, -(2**31) + 2, -1])
def test_a_version_that_damage_changed_hides_no_chat(path: Path, kept: bytes, version: int) -> None:
    path.write_bytes(kept)
    with closing(sqlite3.connect(path)) as damaged:
        damaged.execute(f"PRAGMA user_version = {version}")
    opened, texts = read(path)
    assert "damaged" in told(opened)
    assert opened.lasting
    assert len(texts) == CHATS * EXCHANGES * 2


def test_a_damaged_index_of_words_is_made_again(path: Path, kept: bytes) -> None:
    """Of which SQLite's check of the file says nothing."""
    path.write_bytes(kept)
    with closing(sqlite3.connect(path)) as damaged:
        damaged.execute("UPDATE turn_words_data SET block = zeroblob(length(block))")
        damaged.execute("UPDATE chat_words_data SET block = zeroblob(length(block))")
        damaged.commit()
    opened, texts = read(path)
    assert opened.problem is None
    assert len(texts) == CHATS * EXCHANGES * 2
    with closing(History(path)) as history:
        history.open()
        assert len(history.search("Answer").result()) == CHATS


def test_text_that_damage_made_half_a_surrogate_is_kept(path: Path, kept: bytes) -> None:
    content = kept.replace(b"Answer 3/7.", b"Answer\xed\xa0\x80/7")
    lost = content.index(b"Answer 1/2.") // 4096 * 4096
    path.write_bytes(content[:lost] + bytes(4096) + content[lost + 4096 :])
    _, texts = read(path)
    assert any(t.startswith("Answer\ud800/7") for t in texts)


def test_the_copy_of_the_day_helps_where_nothing_can_be_read(path: Path, kept: bytes) -> None:
    path.write_bytes(kept)
    read(path)
    assert rescue.backup_of(path).exists()
    path.write_bytes(b"\0" * len(kept))
    opened, texts = read(path)
    assert len(texts) == CHATS * EXCHANGES * 2
    assert f"{CHATS} chats with {CHATS * EXCHANGES * 2} messages" in told(opened)


@pytest.mark.parametrize(("days", "anew"), [(-3650, True), (0.5, False), (1.5, True)])
def test_a_copy_is_made_once_a_day_also_where_the_clock_was_ahead(
    path: Path, kept: bytes, days: float, anew: bool
) -> None:
    path.write_bytes(kept)
    copy = rescue.backup_of(path)
    copy.write_bytes(b"of then")
    then = time.time() - days * 86_400
    os.utime(copy, (then, then))
    read(path)
    assert (copy.read_bytes() != b"of then") == anew


def test_an_empty_file_is_a_new_one(path: Path) -> None:
    path.touch()
    opened, _ = read(path)
    assert opened.problem is None


def test_one_of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE turns (recipe TEXT)")
        other.commit()
    content = path.read_bytes()
    opened, _ = read(path)
    assert "another program" in told(opened)
    assert aside(path, "foreign").read_bytes() == content


def test_one_of_a_newer_version(path: Path, kept: bytes) -> None:
    path.write_bytes(kept)
    with closing(sqlite3.connect(path)) as newer:
        newer.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    opened, texts = read(path)
    assert "newer Slipstream" in told(opened)
    assert not texts
    assert aside(path, "newer").exists()


def test_chats_of_a_newer_version_come_back_with_one_that_can_read_them(
    path: Path, kept: bytes
) -> None:
    path.write_bytes(kept)
    for version in (schema.VERSION + 1, schema.VERSION):  # as if it were another app each time
        file = path if version > schema.VERSION else aside(path, "newer")
        with closing(sqlite3.connect(file)) as newer:
            newer.execute(f"PRAGMA user_version = {version}")
        opened, texts = read(path)
    assert "in the list again" in told(opened)
    assert str(aside(path, "taken")) in told(opened)
    assert not list(path.parent.glob("chats.newer-*"))
    assert len(opened.chats) == CHATS + 1  # and the one of the time between
    assert len(texts) == CHATS * EXCHANGES * 2 + 2
    with closing(History(path)) as history:
        found = history.open().result()
        assert found.problem is None
        assert len(history.search("Answer").result()) == CHATS
        for chat in found.chats:
            history.set_deleted(chat.id, True).result()
    opened, _ = read(path)
    assert not opened.chats


def test_chats_of_a_newer_version_that_cannot_be_taken_in_stay(
    path: Path, kept: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    read(path)
    file = path.with_name("chats.newer-20260101-000000.db")
    file.write_bytes(kept)
    with monkeypatch.context() as patch:
        patch.setattr(rescue, "_take", fail)
        opened, texts = read(path)
    assert (opened.problem, opened.lasting) == (None, True)
    assert len(texts) == 2
    assert file.exists()
    opened, texts = read(path)
    assert "in the list again" in told(opened)
    assert len(texts) == CHATS * EXCHANGES * 2 + 4


class Nobody:
    """Somebody for whom permissions count: they do not for root."""

    def __enter__(self) -> None:
        self._root = os.geteuid() == 0
        if self._root:
            os.setresuid(65534, 65534, 0)

    def __exit__(self, *_: object) -> None:
        if self._root:
            os.setresuid(0, 0, 0)


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """For everybody, as are those above it."""
    for folder in tmp_path.parents:
        if os.access(folder, os.W_OK) and folder.name.startswith("pytest-"):
            folder.chmod(0o755)
    tmp_path.chmod(0o755)
    result = tmp_path / "open"
    result.mkdir()
    result.chmod(0o777)
    return result


def test_a_file_that_can_only_be_read_goes_on_as_a_copy(open_folder: Path, kept: bytes) -> None:
    path = open_folder / "chats.db"
    path.write_bytes(kept)
    path.chmod(0o444)
    with Nobody():
        opened, texts = read(path)
    assert opened.lasting
    assert "can only be read" in told(opened)
    assert len(texts) == CHATS * EXCHANGES * 2
    assert aside(path, "read-only").read_bytes() == kept


def test_in_a_folder_that_can_only_be_read_nothing_lasts(open_folder: Path, kept: bytes) -> None:
    path = open_folder / "chats.db"
    path.write_bytes(kept)
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with Nobody():
        opened, texts = read(path)
    open_folder.chmod(0o777)
    assert not opened.lasting
    assert "until the window is closed" in told(opened)
    assert len(texts) == CHATS * EXCHANGES * 2
    assert [p.name for p in open_folder.iterdir()] == ["chats.db"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    opened, _ = read(tmp_path / "file" / "chats.db")
    assert not opened.lasting
    assert "until the window is closed" in told(opened)


def test_one_that_another_program_has_is_not_touched(
    path: Path, kept: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(kept)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        opened, texts = read(path)
        other.execute("ROLLBACK")
    assert not opened.lasting
    assert len(texts) == CHATS * EXCHANGES * 2


def test_where_nothing_can_be_purged_the_others_are_there(
    path: Path, kept: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Store) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    path.write_bytes(kept)
    with closing(History(path)) as history:
        gone, *others = history.open().result().chats
        history.set_deleted(gone.id, True).result()
    with monkeypatch.context() as patch, closing(History(path)) as history:
        patch.setattr(Store, "purge", fail)
        opened = history.open().result()
    assert list(opened.chats) == others
    assert opened.lasting
    assert "full" in told(opened)
    with closing(History(path)) as history:
        assert list(history.open().result().chats) == others


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_CANTOPEN]
)
def test_what_is_wrong_with_the_disk_is_no_damage(
    path: Path, kept: bytes, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def failing(_: sqlite3.Connection) -> bool:
        error = sqlite3.OperationalError("of the disk")
        error.sqlite_errorcode = code
        raise error

    path.write_bytes(kept)
    monkeypatch.setattr(schema, "is_whole", failing)
    opened, texts = read(path)
    assert not opened.lasting
    assert "damaged" not in told(opened)
    assert "of the disk" in told(opened)
    assert len(texts) == CHATS * EXCHANGES * 2
    assert path.read_bytes() == kept
    assert not list(path.parent.glob("chats.*-*.db"))


def test_a_copy_for_which_there_is_no_room_does_not_stay(
    path: Path, kept: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged, copy = kept[: len(kept) * 9 // 10], shutil.copyfile

    def half(source: Path, to: str) -> None:
        if Path(to).parent != path.parent:
            copy(source, to)
            return
        Path(to).write_bytes(Path(source).read_bytes()[:9000])
        raise OSError(errno.ENOSPC, "No space left on device")

    path.write_bytes(damaged)
    monkeypatch.setattr(shutil, "copyfile", half)
    opened, _ = read(path)
    assert not opened.lasting
    assert path.read_bytes() == damaged
    assert [file.name for file in path.parent.iterdir()] == ["chats.db"]


def test_where_there_is_no_room_for_what_can_be_read_nothing_is_replaced(
    path: Path, kept: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = rescue._ready

    def full(path: Path) -> sqlite3.Connection:
        connection = ready(path)
        connection.execute("PRAGMA max_page_count = 1")  # no more than it has already
        return connection

    monkeypatch.setattr(rescue, "_ready", full)
    damaged = kept[: len(kept) * 9 // 10]
    path.write_bytes(damaged)
    with closing(History(path)) as history:
        opened = history.open().result()
    assert not opened.lasting
    assert "full" in told(opened)
    assert path.read_bytes() == damaged
    assert [file.name for file in path.parent.iterdir()] == ["chats.db"]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 10**9), holes=st.integers(1, 6), size=st.sampled_from([1, 16, 512, 9000])
)
def test_damage_by_chance(
    tmp_path: Path, kept_file: Path, seed: int, holes: int, size: int
) -> None:
    """Anywhere in the file, of any kind: it opens, and works on."""
    chance, kept = random.Random(seed), kept_file.read_bytes()
    content = bytearray(kept)
    for _ in range(holes):
        at = chance.randrange(len(content))
        fill = chance.choice([bytes(size), chance.randbytes(size), b"\xff" * size])
        content[at : at + size] = fill[: len(content) - at]
    folder = tmp_path / f"{seed}-{holes}-{size}"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    file = folder / "chats.db"
    file.write_bytes(content)
    opened, _ = read(file)
    if opened.problem is not None:
        assert any(p.read_bytes() == bytes(content) for p in folder.glob("chats.*-*.db"))
