"""Chats outlive the window: what a user finds when it is opened again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from app.conversation import Conversation, End, Role
from app.engine import Figures, Script
from app.history import History
from app.presets import ChatOptions
from app.ui.application import CODEC
from app.ui.chat.editor import QuestionEditor
from app.ui.chat.message import Question
from app.ui.look.notice import Notice
from app.ui.window.book import OPEN
from app.ui.window.chat_list import Entry, State
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine

Open = Callable[..., MainWindow]
Ask = Callable[[MainWindow, str], None]

LONG = " ".join(f"word{i}" for i in range(400))


@pytest.fixture
def open_kept(open_window: OpenWindow, tmp_path: Path, wait_until: WaitUntil) -> Open:
    """Windows over one file of chats."""

    def open_it(engine: BatchEngine | None = None, **options: object) -> MainWindow:
        history = History(tmp_path / "chats.db", CODEC)
        window = open_window(engine, history=history, **options)
        wait_until(lambda: window.controller.book.lasting)
        assert not [n.message for n in window.findChildren(Notice)]
        return window

    return open_it


def rows(window: MainWindow) -> list[str]:
    return [r if isinstance(r, str) else r.title for r in window.sidebar.list.rows.rows]


def entries(window: MainWindow) -> list[Entry]:
    return [r for r in window.sidebar.list.rows.rows if isinstance(r, Entry)]


def shown(window: MainWindow) -> list[str]:
    return [t.text for t in window.controller.current.path()]


def press(window: MainWindow, label: str) -> None:
    for notice in window.findChildren(Notice):
        for button in notice.findChildren(object):  # type: ignore[call-overload]
            if getattr(button, "text", str)() == label and notice.isVisible():
                button.click()
                return
    pytest.fail(f"no notice offers {label}")


def test_chats_and_figures_are_there_again(
    open_kept: Open, ask: Ask, wait_until: WaitUntil
) -> None:
    window = open_kept(BatchEngine(Script(text="An answer.", reasoning="Hm.")), think=True)
    ask(window, "Please explain this")
    window.controller.new_chat()
    ask(window, "And that?")
    footer = window.chats.view.answers[0]._facts.text()
    assert window.chats.view.answers[0]._details.text()
    window.close()
    window = open_kept()
    wait_until(lambda: bool(shown(window)))
    assert rows(window) == ["Today", "And that?", "Explain this"]
    assert shown(window) == ["And that?", "An answer."]
    turn = window.controller.current.path()[-1]
    assert isinstance(turn.figures, Figures)
    assert turn.end is End.DONE
    assert window.chats.view.answers[0]._facts.text() == footer
    assert window.chats.view.answers[0].turn.reasoning == "Hm."
    assert window.sidebar.list.entry().title == "And that?"  # type: ignore[union-attr]


def test_a_new_chat_that_was_on_view_is_new_again(open_kept: Open, ask: Ask) -> None:
    window = open_kept()
    ask(window, "One?")
    window.controller.new_chat()
    window.close()
    window = open_kept()
    assert rows(window) == ["Today", "One?"]
    assert shown(window) == []


def test_a_chat_whose_draft_is_emptied_is_in_no_list(
    open_kept: Open, ask: Ask, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    for _ in range(2):
        window = open_kept()
        assert rows(window) == []
        qtbot.keyClicks(window.composer.field, "hm")
        wait_until(lambda w=window: rows(w) == ["Today", "New chat"])  # type: ignore[misc]
        window.composer.field.clear()
        wait_until(lambda w=window: rows(w) == [])  # type: ignore[misc]
        window.close()
    window = open_kept()
    qtbot.keyClicks(window.composer.field, "hm")
    window.writing.keep()
    window.composer.field.clear()
    window.writing.keep()
    ask(window, "One?")  # it is one again
    window.controller.remove(window.controller.current.path()[0])
    assert rows(window) == []
    window.actions_.undo.trigger()
    assert rows(window) == ["Today", "One?"]
    window.close()
    assert rows(open_kept()) == ["Today", "One?"]


def test_a_new_chat_has_nothing_of_another_one(open_kept: Open, ask: Ask) -> None:
    window = open_kept()
    ask(window, "One?")
    first = window.controller.current
    window.controller.set_options(ChatOptions(system="Be brief."))
    window.controller.remove(first.path()[0])
    window.actions_.new_chat.trigger()
    assert window.controller.current is not first
    assert not window.controller.current.options
    window.close()
    window = open_kept()
    assert [entry.id for entry in entries(window)] == [first.id]  # its prompt is not lost


def test_a_question_is_kept_before_it_is_asked(
    open_kept: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    window = open_kept()
    known: list[list[str]] = []
    ask = window.bridge.ask

    def look_first(*args: object) -> object:
        with closing(sqlite3.connect(tmp_path / "chats.db")) as other:
            known.append([row[0] for row in other.execute("SELECT text FROM turns")])
        return ask(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(window.bridge, "ask", look_first)
    window.controller.ask("Is it there?")
    wait_until(lambda: bool(known))
    assert known == [["Is it there?", ""]]


def test_what_came_is_kept_when_the_window_closes(open_kept: Open, wait_until: WaitUntil) -> None:
    window = open_kept(BatchEngine(Script(text=LONG), batch=1))
    window.controller.ask("Go")
    window.controller.ask("And then?")
    wait_until(lambda: len(window.chats.view.answers[0].turn.text) > 60)
    window.close()
    came = window.chats.view.answers[0].turn.text
    window = open_kept()
    wait_until(lambda: bool(shown(window)))
    assert shown(window) == ["Go", came, "And then?", ""]
    wait_until(lambda: len(window.chats.view.answers) == 2)  # the newest is made first
    first, second = window.chats.view.answers
    assert first._note.text() == "Interrupted: the window was closed."
    assert second._note.text() == "Not answered: the window was closed."


def test_the_answer_is_kept_while_it_comes(
    open_kept: Open, tmp_path: Path, wait_until: WaitUntil
) -> None:
    window = open_kept(BatchEngine(Script(text=" ".join([LONG] * 20)), batch=1))

    def kept() -> str:
        with closing(sqlite3.connect(tmp_path / "chats.db")) as other:
            row = other.execute("SELECT text FROM turns WHERE role = 'assistant'").fetchone()
        return row[0] if row else ""

    window.controller.ask("Go")
    wait_until(lambda: len(kept()) > 20)
    assert window.controller.busy


def test_the_list_shows_what_comes_and_what_is_new(open_kept: Open, wait_until: WaitUntil) -> None:
    engine = BatchEngine(Script(text=LONG), batch=1)
    window = open_kept(engine)
    window.controller.ask("First")
    window.controller.new_chat()
    assert not window.composer.stop.isVisible()
    window.controller.ask("Second")
    window.controller.new_chat()
    states = {"First": State.ANSWERING, "Second": State.WAITING}
    wait_until(lambda: {e.title: e.state for e in entries(window)} == states)
    engine.hurry()
    wait_until(lambda: not window.controller.answers.all)
    assert {e.state for e in entries(window)} == {State.UNSEEN}
    window.controller.show_chat(entries(window)[0].id)
    assert entries(window)[0].state is State.NONE


def test_rename_pin_delete_and_undo(
    open_kept: Open, ask: Ask, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    window = open_kept()
    for text in ("One?", "Two?"):
        window.controller.new_chat()
        ask(window, text)
    chats = window.sidebar.list
    window.actions_.rename.trigger()
    field = chats.findChild(QLineEdit)
    assert field is not None
    qtbot.keyClicks(field, "Renamed")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    wait_until(lambda: rows(window) == ["Today", "Renamed", "One?"])
    window.controller.show_chat(entries(window)[1].id)
    window.actions_.pin.trigger()
    wait_until(lambda: rows(window) == ["Pinned", "One?", "Today", "Renamed"])
    window.actions_.delete_chat.trigger()
    wait_until(lambda: rows(window) == ["Today", "Renamed"])
    wait_until(lambda: shown(window)[:1] == ["Two?"])
    press(window, "Undo")
    wait_until(lambda: rows(window) == ["Pinned", "One?", "Today", "Renamed"])
    wait_until(lambda: shown(window)[:1] == ["One?"])
    window.actions_.delete_chat.trigger()
    window.close()
    window = open_kept()
    assert rows(window) == ["Today", "Renamed"]


def test_what_was_deleted_comes_back_the_last_first(
    open_kept: Open, ask: Ask, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    window = open_kept()
    for text in ("One?", "Two?", "Three?"):
        window.controller.new_chat()
        ask(window, text)

    def told() -> list[str]:
        return [notice.message for notice in window.notices.all]

    def undo() -> None:
        keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        qtbot.keyClick(window, Qt.Key.Key_Z, keys)

    window.controller.delete_chat(entries(window)[0].id)
    assert told() == ["“Three?” is deleted."]
    window.controller.delete_chat(entries(window)[0].id)
    assert told() == ["2 chats deleted."]
    wait_until(lambda: shown(window)[:1] == ["One?"])
    window.controller.remove(window.controller.current.path()[0])
    assert told() == ["2 chats and 2 messages deleted."]
    undo()
    assert shown(window)[:1] == ["One?"]
    undo()
    wait_until(lambda: shown(window)[:1] == ["Two?"])
    assert told() == ["“Three?” is deleted."]
    press(window, "Undo")
    wait_until(lambda: shown(window)[:1] == ["Three?"])
    assert rows(window) == ["Today", "Three?", "Two?", "One?"]
    assert not told()
    assert not window.actions_.undo.isEnabled()


def test_a_deletion_whose_message_was_closed_is_offered_no_more(open_kept: Open, ask: Ask) -> None:
    window = open_kept()
    for text in ("One?", "Two?", "Three?"):
        window.controller.new_chat()
        ask(window, text)
    for _ in range(2):
        window.controller.delete_chat(entries(window)[0].id)
    window.notices.close_all()
    assert not window.actions_.undo.isEnabled()
    window.actions_.delete_chat.trigger()
    assert [notice.message for notice in window.notices.all] == ["“One?” is deleted."]


def test_a_chat_that_is_deleted_while_it_is_written_in_stays_deleted(
    open_kept: Open, ask: Ask, wait_until: WaitUntil
) -> None:
    """Its draft is kept when another chat comes on view, which must not bring it back."""
    window = open_kept()
    for text in ("One?", "Two?"):
        window.controller.new_chat()
        ask(window, text)
    window.composer.field.setPlainText("a draft")
    window.actions_.delete_chat.trigger()
    wait_until(lambda: shown(window)[:1] == ["One?"])
    assert rows(window) == ["Today", "One?"]
    press(window, "Undo")
    wait_until(lambda: window.composer.field.toPlainText() == "a draft")
    window.close()
    window = open_kept()
    wait_until(lambda: window.composer.field.toPlainText() == "a draft")
    window.actions_.delete_chat.trigger()
    window.close()
    assert rows(open_kept()) == ["Today", "One?"]


def test_a_chat_deleted_in_mid_answer_comes_back_with_all_that_came(
    open_kept: Open, wait_until: WaitUntil
) -> None:
    window = open_kept(BatchEngine(Script(text=LONG), batch=1))
    window.controller.ask("Go")
    answer = window.controller.current.path()[-1]
    wait_until(lambda: len(answer.text) > 60)
    window.actions_.delete_chat.trigger()
    wait_until(lambda: not window.controller.answers.all)
    press(window, "Undo")
    wait_until(lambda: len(shown(window)) == 2)
    window.close()
    window = open_kept()
    wait_until(lambda: len(shown(window)) == 2)
    kept = window.controller.current.path()[-1]
    assert (kept.text, kept.end) == (answer.text, End.STOPPED)
    assert isinstance(kept.figures, Figures)


def test_words_are_found_in_other_chats(
    open_kept: Open, ask: Ask, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    window = open_kept(BatchEngine(Script(text="The tram to Lisbon.")))
    ask(window, "How do I travel?")
    window.controller.new_chat()
    window.actions_.search.trigger()
    qtbot.keyClicks(window.focusWidget(), "lisb")
    wait_until(lambda: rows(window) == ["1 chat", "How do I travel?"])
    assert "Lisbon" in entries(window)[0].excerpt
    qtbot.keyClick(window.sidebar.search, Qt.Key.Key_Return)
    wait_until(lambda: shown(window)[:1] == ["How do I travel?"])
    qtbot.keyClick(window.sidebar.search, Qt.Key.Key_Escape)
    assert rows(window) == ["Today", "How do I travel?"]


@pytest.mark.parametrize(
    ("query", "looked_for", "count"),
    [
        ("uber", "Über", "1 of 1"),
        ("größe", "Größe", "1 of 1"),
        ('"alpha beta"', "beta", "1 of 1"),
        ("beta.", "beta.", "1 of 1"),
        ("about:", "about", "1 of 1"),
        ("C++", "C++", "1 of 1"),
    ],
)
def test_a_hit_leads_to_where_it_stands(
    open_kept: Open, ask: Ask, wait_until: WaitUntil, query: str, looked_for: str, count: str
) -> None:
    window = open_kept(BatchEngine(Script(text="It is about Über-Größe, C++ and alpha beta.")))
    ask(window, "Tell me?")
    window.actions_.search.trigger()
    window.sidebar.search.setText(query)
    wait_until(lambda: rows(window)[:1] == ["1 chat"])
    window.sidebar._enter_list(open_it=True)
    assert window.finder.field.text() == looked_for
    assert window.finder._count.text() == count


def test_what_is_new_in_the_chat_is_found_too(
    open_kept: Open, ask: Ask, wait_until: WaitUntil
) -> None:
    window = open_kept(BatchEngine(Script(text="The tram to Lisbon.")))
    ask(window, "How do I travel?")
    ask(window, "Which tram?")
    window._find("tram")
    window.finder.go(1)
    told = window.finder._count.text
    assert told() == "1 of 3"
    ask(window, "Tram?")
    assert told() == "1 of 5"  # the place is the same
    window.controller.remove(window.controller.current.path()[0])
    assert told() == "1 of 4"
    window.finder.field.setText("no such word")
    window.finder.renew(window.controller.current.path())
    assert told() == "Nothing found"


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Down])
def test_enter_waits_for_what_is_looked_for(
    open_kept: Open, ask: Ask, qtbot: QtBot, wait_until: WaitUntil, key: Qt.Key
) -> None:
    window = open_kept()
    for text in ("How do I travel?", "Two?"):
        window.controller.new_chat()
        ask(window, text)
    window.controller.new_chat()
    window.actions_.search.trigger()
    qtbot.keyClicks(window.sidebar.search, "travel")
    qtbot.keyClick(window.sidebar.search, key)  # nothing has been found yet
    wait_until(lambda: rows(window) == ["1 chat", "How do I travel?"])
    if key == Qt.Key.Key_Return:
        wait_until(lambda: shown(window)[:1] == ["How do I travel?"])
    else:
        chosen = window.sidebar.list.entry()
        assert chosen is not None
        assert chosen.title == "How do I travel?"
        assert window.sidebar.list.hasFocus()


def test_a_chat_that_is_chosen_while_a_found_one_is_read_stays_on_view(
    open_kept: Open, ask: Ask, wait_until: WaitUntil
) -> None:
    window = open_kept(BatchEngine(Script(text="The tram to Lisbon.")))
    for text in ("How do I travel?", "Two?"):
        window.controller.new_chat()
        ask(window, text)
    window.close()
    window = open_kept()
    wait_until(lambda: shown(window)[:1] == ["Two?"])
    chosen, found = window.controller.current.id, entries(window)[1].id
    assert window.controller.book.get(found) is None
    window._show_found(found, "", "Lisbon")
    window.controller.show_chat(chosen)
    wait_until(lambda: window.controller.book.get(found) is not None)
    assert window.controller.current.id == chosen
    assert not window.finder.isVisible()
    window._show_found(found, "", "Lisbon")
    wait_until(lambda: window.controller.current.id == found)
    assert window.finder.isVisible()


def test_a_question_that_is_edited_waits_while_other_chats_are_looked_at(
    open_kept: Open, ask: Ask, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    window = open_kept()

    def editor() -> QuestionEditor | None:
        question = window.chats.view.messages[0]
        assert isinstance(question, Question)
        return question._editor

    ask(window, "One?")
    first = window.controller.current.id
    wait_until(lambda: len(window.chats.view.messages) == 2)
    window.chats.view.messages[0].start_editing()  # type: ignore[union-attr]
    qtbot.keyClicks(editor().field, " And")  # type: ignore[union-attr]
    for n in range(OPEN + 2):
        window.controller.new_chat()
        ask(window, f"Other {n}?")
    window.controller.show_chat(first)
    assert editor().field.toPlainText() == "One? And"  # type: ignore[union-attr]
    qtbot.keyClick(editor().field, Qt.Key.Key_Escape)  # type: ignore[union-attr]
    for summary in window.controller.book.summaries:
        window.controller.show_chat(summary.id)
        wait_until(lambda s=summary: window.controller.current.id == s.id)  # type: ignore[misc]
    wait_until(lambda: len(window.chats.view.messages) == 2)
    assert editor() is None
    window.chats.view.messages[0].start_editing()  # type: ignore[union-attr]
    assert editor().field.toPlainText() == "One? And"  # type: ignore[union-attr]


def test_a_damaged_file_is_said(
    open_window: OpenWindow, tmp_path: Path, wait_until: WaitUntil
) -> None:
    (tmp_path / "chats.db").write_bytes(b"\0" * 9000)
    window = open_window(history=History(tmp_path / "chats.db", CODEC))
    wait_until(lambda: any("no database" in n.message for n in window.findChildren(Notice)))
    assert window.controller.book.lasting


def test_what_cannot_be_kept_is_tried_again(
    open_kept: Open, ask: Ask, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    window = open_kept()
    store = window.archive._history._store  # type: ignore[union-attr]
    assert store is not None

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(store, "put", full)
    ask(window, "Kept?")
    assert any("disk is full" in n.message for n in window.findChildren(Notice))
    monkeypatch.undo()
    window.close()
    window = open_kept()
    wait_until(lambda: bool(shown(window)))
    assert shown(window)[0] == "Kept?"


def test_a_chat_with_lost_rows_opens(
    open_kept: Open, tmp_path: Path, ask: Ask, wait_until: WaitUntil
) -> None:
    window = open_kept()
    chat = Conversation()
    answer = chat.answer(chat.ask("Hello?"))
    answer.text, answer.end = "Yes", End.DONE
    window.controller.book.add(chat)
    window.close()
    with closing(sqlite3.connect(tmp_path / "chats.db")) as other:
        other.execute("DELETE FROM turns WHERE role = 'user'")
        other.commit()
    window = open_kept()
    wait_until(lambda: [s.id for s in window.controller.book.summaries] == [chat.id])
    window.controller.show_chat(chat.id)
    wait_until(lambda: window.controller.current.id == chat.id)
    ask(window, "And?")
    assert [t.role for t in window.controller.current.path()] == [Role.USER, Role.ASSISTANT] * 2
