"""What is written stays with its chat, is counted, and is told about where it is too long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app import attachments
from app.drafting import Attachment, Draft
from app.engine import Ask as Asked
from app.engine import Command, Count, Event, Failed, Reading, Script
from app.errors import DeviceError
from app.ui.look.notice import Notice
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine

Ask = Callable[[MainWindow, str], None]

LONG = " ".join(f"word{i}" for i in range(400))


def used(window: MainWindow) -> int:
    return window.context.use.used


def test_a_draft_belongs_to_its_chat(open_window: OpenWindow, ask: Ask, qtbot: QtBot) -> None:
    window = open_window()
    ask(window, "Hello?")
    first = window.controller.current
    qtbot.keyClicks(window.composer.field, "for the first")
    window.actions_.new_chat.trigger()
    assert window.composer.field.toPlainText() == ""
    qtbot.keyClicks(window.composer.field, "for the second")
    window.controller.show_chat(first.id)
    assert window.composer.field.toPlainText() == "for the first"
    window.actions_.new_chat.trigger()
    assert window.composer.field.toPlainText() == "for the second"


def test_a_draft_is_kept_after_a_pause(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    window = open_window()
    edited: list[object] = []
    window.writing.edited.connect(edited.append)
    qtbot.keyClicks(window.composer.field, "Hello")
    wait_until(lambda: bool(edited))
    assert edited == [window.controller.current]
    assert "Hello" in window.controller.current.draft
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Return)
    assert window.controller.current.draft == ""


def test_the_draft_is_part_of_the_context(
    open_window: OpenWindow, ask: Ask, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    window = open_window(BatchEngine(Script(text="one two three")))
    ask(window, "Hello?")
    assert used(window) == 5 + 3
    qtbot.keyClicks(window.composer.field, "four words more here")
    assert "…" in window.composer._context.text()  # it is not counted yet
    wait_until(lambda: window.context.use.exact)
    # a word a token, and four a message: Hello?, the answer, the draft
    assert used(window) == 5 + 7 + 8
    window.composer.clear()
    wait_until(lambda: window.context.use.exact)
    assert used(window) == 8
    window.actions_.new_chat.trigger()
    assert used(window) == 0


def test_the_draft_is_counted_while_an_answer_comes(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    window = open_window(BatchEngine(Script(text=LONG * 10), batch=1))
    window.controller.ask("Go")
    qtbot.keyClicks(window.composer.field, "and then some")
    wait_until(lambda: window.context.use.exact and window.controller.current.context > 20)
    assert window.controller.busy
    wait_until(lambda: used(window) == window.controller.current.context + 7)


def test_typing_asks_for_few_counts(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    engine = BatchEngine()
    window = open_window(engine)
    qtbot.keyClicks(window.composer.field, "a text of more letters than a pause has time for")
    wait_until(lambda: window.context.settled)
    assert len([c for c in engine.commands if isinstance(c, Count)]) < 10


def test_what_is_too_long_is_told_before_it_is_sent(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    engine = BatchEngine()
    window = open_window(engine, n_ctx=256)
    window.composer.field.insertPlainText("word " * 300)
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Return)  # sooner than it is counted
    wait_until(window.composer.warning.isVisible)
    assert window.composer.warning.text() == (
        "Too long by 49 tokens: what is written has 304 tokens, the context holds 256. Shorten it."
    )
    assert offered(window) == ["More room"]  # there is nothing else to leave out
    assert not engine.asked
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Return)
    assert not engine.asked
    assert window.composer.field.toPlainText()
    room = next(b for b in window.composer.findChildren(QPushButton) if b.text() == "More room")
    for _ in range(2):  # it leads to what there is to change, also where the settings are open
        qtbot.mouseClick(room, Qt.MouseButton.LeftButton)
        qtbot.wait(1)
        context = window.sheet.numbers["n_ctx"].field
        assert not context.visibleRegion().isEmpty()
        assert context.hasFocus()
    window.composer.field.setPlainText("word " * 100)
    wait_until(lambda: not window.composer.warning.isVisible())
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Return)
    wait_until(lambda: len(engine.asked) == 1)


def offered(window: MainWindow) -> list[str]:
    buttons = window.composer.findChildren(QPushButton)
    return [button.text() for button in buttons if button.isVisible()]


def test_only_what_helps_is_offered_where_a_chat_is_full(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil
) -> None:
    window = open_window(BatchEngine(Script(text="word " * 40)), n_ctx=256)
    for question, ways in (("Hello?", ["New chat"]), ("More?", ["Drop oldest", "New chat"])):
        ask(window, question)
        window.composer.field.setPlainText("word " * 240)
        wait_until(lambda: window.composer.warning.isVisible() and window.context.settled)
        assert offered(window) == [*ways, "More room"]
        assert ("oldest" in window.composer.warning.text()) == ("Drop oldest" in ways)
        window.composer.clear()
        wait_until(lambda: window.context.settled)


def test_a_picture_is_refused_with_the_reason(open_window: OpenWindow) -> None:
    window = open_window()
    picture = QMimeData()
    picture.setImageData(QImage(4, 4, QImage.Format.Format_RGB32))
    assert window.composer.field.canInsertFromMimeData(picture)
    window.composer.field.insertFromMimeData(picture)
    (told,) = window.findChildren(Notice)
    assert told.message.startswith("The picture is not attached")


def test_a_long_text_that_fits_is_sent_once_it_is_counted(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    engine = BatchEngine()
    window = open_window(engine, n_ctx=256)
    window.composer.field.insertPlainText("word " * 200)
    qtbot.keyClick(window.composer.field, Qt.Key.Key_Return)
    assert not engine.asked
    assert "Counting" in window.composer._hint.whole()
    wait_until(lambda: len(engine.asked) == 1)
    assert not window.composer.field.toPlainText()


def test_files_are_attached_or_refused(
    open_window: OpenWindow, tmp_path: Path, wait_until: WaitUntil
) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.bin"
    good.write_text("five words are in it")
    bad.write_bytes(b"\0\1\2\xff")
    window = open_window()
    window.writing.attach([good, bad])
    wait_until(lambda: bool(window.composer.chips.chips))
    wait_until(lambda: "tokens" in window.composer.chips.chips[0].name.text())
    wait_until(lambda: bool(window.findChildren(Notice)))
    assert "`bad.bin` is not attached" in window.findChildren(Notice)[0].message
    window.composer.send.click()
    wait_until(lambda: bool(window.controller.current.turns))
    assert "five words are in it" in window.controller.current.path()[0].text


class SlowFiles:
    """They are read once `let` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.let = threading.Event()
        read = attachments.read

        def slow(file: Path) -> Attachment:
            assert self.let.wait(60)
            return read(file)

        monkeypatch.setattr(attachments, "read", slow)


def test_a_message_waits_for_the_file_that_is_being_read(
    open_window: OpenWindow,
    qtbot: QtBot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wait_until: WaitUntil,
) -> None:
    files, report = SlowFiles(monkeypatch), tmp_path / "report.txt"
    report.write_text("The secret number is 42.")
    engine = BatchEngine()
    window = open_window(engine)
    composer = window.composer
    qtbot.keyClicks(composer.field, "Sum it up")
    window.writing.attach([report])
    assert composer.chips.reading.isVisible()
    assert composer.chips.reading.name.text() == "Reading report.txt …"
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert not composer.send.isEnabled()
    assert not engine.asked
    files.let.set()
    wait_until(composer.send.isEnabled)
    assert not composer.chips.reading.isVisible()
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    wait_until(lambda: bool(engine.asked))
    assert "The secret number is 42." in engine.asked[0].chat[-1].content


def test_a_file_that_comes_late_goes_with_its_own_chat(
    open_window: OpenWindow,
    ask: Ask,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wait_until: WaitUntil,
) -> None:
    files, report = SlowFiles(monkeypatch), tmp_path / "report.txt"
    report.write_text("The secret number is 42.")
    window = open_window()
    ask(window, "Hello?")
    first = window.controller.current
    window.composer.field.setPlainText("Sum it up")
    window.writing.attach([report, report])
    assert window.composer.chips.reading.name.text() == "Reading 2 files …"
    window.actions_.new_chat.trigger()
    assert not window.composer.chips.isVisible()
    window.controller.show_chat(first.id)
    assert window.composer.chips.reading.isVisible()
    window.actions_.new_chat.trigger()
    files.let.set()
    wait_until(lambda: first.draft.count("report.txt") == 2)
    assert not window.composer.draft()
    window.controller.show_chat(first.id)
    assert window.composer.draft().text == "Sum it up"
    assert [file.name for file in window.composer.draft().attachments] == ["report.txt"] * 2
    assert window.composer.send.isEnabled()


def test_a_file_that_is_being_read_can_be_left_out(
    open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    files = SlowFiles(monkeypatch)
    window = open_window()
    window.composer.field.setPlainText("Sum it up")
    window.writing.attach([tmp_path / "report.txt"])
    window.composer.chips.reading.away.click()
    assert not window.composer.chips.isVisible()
    assert window.composer.send.isEnabled()
    files.let.set()
    qtbot.wait(50)
    assert not window.composer.draft().attachments
    assert not window.notices.all


def test_an_attachment_that_was_taken_away_comes_back(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window()
    ask(window, "Hello?")
    first = window.controller.current
    files = tuple(Attachment(f"{i}.txt", "text") for i in range(3))
    window.composer.set_draft(Draft("Read", files))
    window.composer.chips.chips[1].away.click()
    assert [n.message for n in window.notices.all] == ["“1.txt” is no longer attached."]
    window.actions_.undo.trigger()
    assert window.composer.draft() == Draft("Read", files)
    window.composer.chips.chips[0].away.click()
    window.composer.chips.chips[0].away.click()
    assert [n.message for n in window.notices.all] == ["2 attachments deleted."]
    window.actions_.new_chat.trigger()
    window.actions_.undo.trigger()
    window.actions_.undo.trigger()
    assert not window.composer.draft()  # it is another chat's
    window.controller.show_chat(first.id)
    assert window.composer.draft() == Draft("Read", files)


def test_a_long_prompt_tells_how_far_it_is(open_window: OpenWindow, wait_until: WaitUntil) -> None:
    window = open_window(BatchEngine(Script(text="Fine."), batch=1), n_ctx=65536)
    told: list[str] = []
    window.bridge.reading.connect(lambda _: told.append(window.composer._hint.whole()))
    window.controller.ask("word " * 5000)
    wait_until(lambda: not window.controller.busy)
    assert "Reading the prompt … 2,048 of 5,004 tokens" in told
    assert window.composer._hint.whole() == ""


class Losing(BatchEngine):
    """Its device goes while a prompt is read."""

    def events(self, request: int, command: Command) -> Iterator[Event]:
        if not isinstance(command, Asked):
            yield from super().events(request, command)
            return
        yield Reading(request, 4_096, 9_000)
        yield Failed(request, DeviceError("The GPU is lost.", remedy="Use the CPU."))


def test_a_prompt_whose_answer_failed_is_read_no_more(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    window = open_window(Losing(batch=1))
    told: list[str] = []
    window.bridge.reading.connect(lambda _: told.append(window.composer._hint.whole()))
    window.controller.ask("A long one")
    wait_until(lambda: not window.controller.busy)
    assert told == ["Reading the prompt … 4,096 of 9,000 tokens", ""]
