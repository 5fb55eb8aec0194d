"""Chats come back as they went, rows by chance among them; a bad row costs one row."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.conversation import UNNAMED, Conversation, End, Role, Turn
from app.engine.figures import Figures
from app.engine.messages import FinishReason
from app.engine.stats import RoundTotals
from app.errors import ContextFullError
from app.history import Codec, History, Hit, Opened, schema, words

Open = Callable[[], tuple[History, Opened]]

CODEC = Codec(
    encode=lambda f: f.as_dict() if isinstance(f, Figures) else None, decode=Figures.from_dict
)

FIGURES = Figures(
    FinishReason.LENGTH, 30, 12, 4, 5.5, RoundTotals(3, 9, 5, None, 3.0, 1.0, 4.0,
    accepted_per_round=(2, 3, 0), drafted_at=(3, 2), accepted_at=(2, 1)),
    50.0, "cpu", "A processor", None, "demo", 40.0, 400.0,
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "chats.db"


@pytest.fixture
def open_history(path: Path) -> Iterator[Open]:
    opened: list[History] = []

    def open_it() -> tuple[History, Opened]:
        for before in opened:
            before.close()
        opened[:] = [History(path, CODEC)]
        return opened[0], opened[0].open().result()

    yield open_it
    for history in opened:
        history.close()


def chat_of(*texts: str) -> Conversation:
    chat = Conversation()
    for i in range(0, len(texts), 2):
        answer = chat.answer(chat.ask(texts[i]))
        answer.text, answer.end = texts[i + 1], End.DONE
    return chat


def save(history: History, chat: Conversation) -> None:
    history.save(chat, chat.turns.values()).result()


def described(chat: Conversation) -> dict[str, Any]:
    turns = [asdict(t) | {"error": str(t.error or "")} for t in chat.turns.values()]
    names = ("id", "leaf", "name", "pinned", "created", "used", "draft", "options", "start")
    return {name: getattr(chat, name) for name in names} | {"turns": turns}


def test_a_chat_comes_back_whole(open_history: Open) -> None:
    history, opened = open_history()
    assert (opened.chats, opened.problem, opened.lasting) == ((), None, True)
    chat = chat_of("What is DFlash?", "A drafter.", "And Qwen?", "A model.")
    chat.name, chat.pinned, chat.draft = "Names", True, "Not sent \ud83d yet"
    chat.options, chat.start = '{"temperature": 0.5}', "somewhere"
    answer = chat.path()[-1]
    answer.reasoning, answer.figures, answer.thought_ms, answer.context = "hm", FIGURES, 900, 77
    answer.error = ContextFullError("It is full.", remedy="Begin anew.")
    chat.answer(chat.path()[0]).end = End.STOPPED
    save(history, chat)
    history, opened = open_history()
    assert [(s.title, s.named, s.pinned) for s in opened.chats] == [("Names", True, True)]
    again, lost = history.load(chat.id).result()
    assert again is not None
    assert not lost
    assert described(again) == described(chat)
    assert type(again.turns[answer.id].error) is ContextFullError
    assert history.load("another").result() == (None, 0)


texts = st.text(st.characters(), max_size=30) | st.text("a\0\ud800\udfff\x02 '\"%_\\", max_size=8)
ends = st.sampled_from([e for e in End if e is not End.COMING])


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.lists(st.tuples(texts, texts, ends), max_size=5), name=texts, draft=texts)
def test_rows_by_chance_come_back(
    tmp_path: Path, rows: list[tuple[str, str, End]], name: str, draft: str
) -> None:
    history = History(tmp_path / "chance.db", CODEC)
    try:
        history.open().result()
        chat = Conversation(name=name, draft=draft)
        for asked, said, end in rows:
            answer = chat.answer(chat.ask(asked))
            answer.text, answer.reasoning, answer.end = said, asked, end
        save(history, chat)
        again, lost = history.load(chat.id).result()
        assert again is not None
        assert not lost
        assert described(again) == described(chat)
        for query in (name, draft, *(r[0] for r in rows)):
            history.search(query).result()
    finally:
        history.close()


def test_turns_change_and_go(open_history: Open) -> None:
    history, _ = open_history()
    chat = chat_of("One?", "1", "Two?", "2")
    save(history, chat)
    answer = chat.path()[1]
    answer.text = "one"
    removed = chat.remove(chat.path()[2])
    history.save(chat, [answer], [t.id for t in removed.turns]).result()
    again, _ = history.load(chat.id).result()
    assert again is not None
    assert [t.text for t in again.path()] == ["One?", "one"]
    assert not history.search("Two").result()
    assert history.search("one").result()[0].count == 2


def test_an_answer_that_nobody_ended_is_lost(open_history: Open) -> None:
    history, _ = open_history()
    chat = Conversation()
    chat.answer(chat.ask("Go")).text = "As far as"
    save(history, chat)
    again, _ = history.load(chat.id).result()
    assert again is not None
    assert again.path()[-1].end is End.LOST
    assert again.path()[-1].continues


def test_deleting_can_be_undone_until_the_next_start(open_history: Open, path: Path) -> None:
    history, _ = open_history()
    chat, other = chat_of("One?", "1"), chat_of("Two?", "2")
    for c in (chat, other):
        save(history, c)
    history.set_deleted(chat.id, True).result()
    assert not history.search("One").result()
    history.set_deleted(chat.id, False).result()
    assert history.search("One").result()
    history.set_deleted(chat.id, True).result()
    _, opened = open_history()
    assert [s.id for s in opened.chats] == [other.id]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM turns").fetchone()[0] == 2
        assert connection.execute("SELECT count(*) FROM turn_words").fetchone()[0] == 2


def test_the_chat_on_view_is_remembered(open_history: Open) -> None:
    history, _ = open_history()
    history.remember("that one").result()
    assert open_history()[1].last == "that one"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("trip", ["Trip plan"]),  # a title first
        ("TRI", ["Trip plan"]),
        ("lisb", ["Trip plan", "Second"]),
        ("lisbon tram", ["Second"]),
        ("cafe", ["Second"]),
        ("安静", ["Chinese"]),
        ("100%", ["Second"]),
        ('"; DROP', []),
        ("zebra", []),
        (" ", []),
    ],
)
def test_words_of_titles_and_texts_are_found(
    open_history: Open, query: str, found: list[str]
) -> None:
    history, _ = open_history()
    for used, (name, *said) in enumerate(
        [
            ("Chinese", "哪里安静？", "山里很安静。"),
            ("Second", "A café?", "The Lisbon tram, 100% sure."),
            ("Trip plan", "Where to?", "Lisbon."),
        ]
    ):
        chat = chat_of(*said)
        chat.name, chat.used = name, float(used)
        save(history, chat)
    assert [hit.title for hit in history.search(query).result()] == found


def test_a_hit_says_where(open_history: Open) -> None:
    history, _ = open_history()
    chat = chat_of("Where?", "In\n**Lisbon** or Porto.")
    save(history, chat)
    (hit,) = history.search("lisb").result()
    assert hit.turn == chat.path()[-1].id
    assert f"{Hit.START}Lisbon{Hit.STOP}" in hit.excerpt
    assert "\n" not in hit.excerpt


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE turns SET role = 'nobody' WHERE text = 'Two?'",
        "UPDATE turns SET thought_ms = 'x' WHERE text = 'Two?'",
        "UPDATE turns SET place = 'x' WHERE text = 'Two?'",
        "UPDATE turns SET created = 'x' WHERE text = 'Two?'",
        "DELETE FROM turns WHERE text = 'Two?'",
    ],
)
def test_a_bad_row_costs_one_row(open_history: Open, path: Path, harm: str) -> None:
    history, _ = open_history()
    chat = chat_of("One?", "1", "Two?", "2", "Three?", "3")
    save(history, chat)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(harm)
        connection.commit()
    again, lost = history.load(chat.id).result()
    assert again is not None
    assert lost == ("DELETE" not in harm)
    said = [t.text for t in again.path()]
    assert said in (["One?", "1", "", "2", "Three?", "3"], ["One?", "2", "Three?", "3"])


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE turns SET figures = '{', error = '[]'",
        "UPDATE turns SET figures = '{\"totals\": 3}', error = '{}'",
        "UPDATE turns SET text = CAST(x'61ff62' AS TEXT) WHERE text = '1'",
        "UPDATE chats SET options = x'ff', draft = 9, leaf = 'nobody', start = 3",
    ],
)
def test_what_is_only_odd_costs_no_row(open_history: Open, path: Path, harm: str) -> None:
    history, _ = open_history()
    chat = chat_of("One?", "1")
    chat.path()[-1].figures = FIGURES
    save(history, chat)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(harm)
        connection.commit()
    again, lost = history.load(chat.id).result()
    assert again is not None
    assert not lost
    assert [t.text for t in again.path()] in (["One?", "1"], ["One?", "a\ufffdb"])


def test_a_row_of_the_list_that_is_bad_costs_that_row(open_history: Open, path: Path) -> None:
    history, _ = open_history()
    chat, other = chat_of("One?", "1"), chat_of("Two?", "2")
    for c in (chat, other):
        save(history, c)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE chats SET used = 'x' WHERE id = ?", (chat.id,))
        connection.commit()
    assert [s.title for s in open_history()[1].chats] == ["Two?"]


def test_two_thousand_messages_are_searched_at_once(open_history: Open) -> None:
    history, _ = open_history()
    words = "the drafter proposes a block and one pass verifies it in the target".split()
    for n in range(10):
        chat = Conversation(name=f"Chat {n}")
        for i in range(100):
            answer = chat.answer(chat.ask(" ".join(words[i % 7 :]) + f" q{i}"))
            answer.text, answer.end = " ".join(words * 8) + f" number{n}x{i}", End.DONE
        history.save(chat, chat.turns.values())
    history.search("drafter").result()
    for query in ("number7x5", "drafter block", "v"):
        times = []
        for _ in range(5):
            before = time.perf_counter()
            assert history.search(query).result()
            times.append(time.perf_counter() - before)
        assert min(times) < 0.1, query  # `bench ui` measures more of them


def test_a_file_of_the_first_version_is_searched_as_before(path: Path, open_history: Open) -> None:
    """Its index lacked the first letters, which took long to gather."""
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as old:
        for statement in (schema.MIGRATIONS[0], "PRAGMA user_version = 1"):
            old.executescript(statement)
        old.execute(f"PRAGMA application_id = {schema.APPLICATION}")
        old.execute("INSERT INTO chats (id, title, created, used) VALUES ('c', 'Old', 1, 1)")
        old.execute(
            "INSERT INTO turns (id, chat, place, role, text, created) "
            "VALUES ('t', 'c', 1, 'user', 'Where is the harbour?', 1)"
        )
        old.execute("INSERT INTO turn_words (rowid, text) VALUES (1, 'Where is the harbour?')")
        old.commit()
    history, opened = open_history()
    assert opened.problem is None
    for query in ("h", "harb", "harbour"):
        assert [hit.turn for hit in history.search(query).result()] == ["t"], query
    with closing(sqlite3.connect(path)) as new:
        made = new.execute("SELECT sql FROM sqlite_master WHERE name = 'turn_words'").fetchone()
    assert "prefix='1 2 3'" in made[0]


def test_a_chat_without_a_name_has_one(open_history: Open) -> None:
    history, _ = open_history()
    chat = Conversation()
    save(history, chat)
    assert open_history()[1].chats[0].title == UNNAMED
    turn = Turn(Role.USER, None)
    assert turn.role is Role.USER


def test_words_that_are_gone_are_a_fault_of_the_file(open_history: Open, path: Path) -> None:
    history, _ = open_history()
    save(history, chat_of("a question", "an answer"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE turn_words")
        with pytest.raises(schema.FAULTS, match="turn_words"):
            words.make_again(connection)
        assert not connection.in_transaction
        assert connection.execute("SELECT count(*) FROM chat_words").fetchone() == (1,)
