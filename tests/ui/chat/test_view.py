"""A path of turns on the page: what is there already stays, whatever else changes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QImage, QPaintEvent, QTextCursor
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.conversation import Conversation, End
from app.drafting import Attachment, Draft
from app.engine import AskParams
from app.errors import ContextFullError
from app.ui.chat import find
from app.ui.chat.chips import file_chips
from app.ui.chat.find import FindBar
from app.ui.chat.live_turn import LiveTurn
from app.ui.chat.message import AnswerView, Question
from app.ui.chat.view import ChatView
from app.ui.chat.welcome import Welcome
from app.ui.look.notice import Notice
from app.ui.look.theme import Theme
from app.ui.markdown import inline
from app.ui.markdown.text_view import TextView
from tests.ui.conftest import WaitUntil
from tests.ui.wheel import turn


@pytest.fixture
def view(qtbot: QtBot, look: Theme) -> ChatView:
    result = ChatView()
    qtbot.addWidget(result)
    result.show()
    return result


def exchange(conversation: Conversation, question: str, answer: str) -> None:
    conversation.answer(conversation.ask(question)).text = answer


def asked(view: ChatView, qtbot: QtBot, question: str, answer: str) -> Question:
    """The first message, a question, of a chat of these two that is shown whole."""
    conversation = Conversation()
    exchange(conversation, question, answer)
    view.show_path(conversation.path())
    qtbot.waitUntil(lambda: len(view.messages) == 2)  # made in turns, the newest first
    first = view.messages[0]
    assert isinstance(first, Question)
    return first


def shown(view: ChatView) -> list[str]:
    return [m.turn.text for m in view.findChildren((Question, AnswerView)) if m.isVisibleTo(view)]  # type: ignore[call-overload]


def test_a_path_is_shown(view: ChatView) -> None:
    conversation = Conversation()
    view.show_path(conversation.path())
    assert view.findChild(Welcome).isVisible()
    exchange(conversation, "One?", "1")
    view.show_path(conversation.path())
    assert not view.findChild(Welcome).isVisible()
    assert [a.turn.text for a in view.answers] == ["1"]


def test_what_is_there_stays(view: ChatView) -> None:
    conversation = Conversation()
    exchange(conversation, "One?", "1")
    view.show_path(conversation.path())
    first = view.answers[0]
    exchange(conversation, "Two?", "2")
    view.show_path(conversation.path())
    assert view.answers[0] is first


def test_an_answer_beside_takes_its_place(view: ChatView) -> None:
    conversation = Conversation()
    exchange(conversation, "One?", "1")
    view.show_path(conversation.path())
    question, old = conversation.path()
    new = conversation.answer(question)
    view.show_path(conversation.path())
    assert [a.turn for a in view.answers] == [new]
    assert view.answer_of(old) is None
    assert view.answer_of(new) is view.answers[0]


def test_what_was_said_before_it_was_shown_is_there(view: ChatView, wait_until: WaitUntil) -> None:
    conversation = Conversation()
    exchange(conversation, "One?", "*one*")
    answer = conversation.path()[-1]
    answer.reasoning = "\n\nhm"
    answer.error, answer.end = ContextFullError("Too long.", remedy="Start anew."), End.FAILED
    view.resize(700, 500)
    view.show_path(conversation.path())
    wait_until(lambda: len(view.messages) == 2 and view.answers[0].rendered)
    texts = {t.accessibleName(): t.toPlainText() for t in view.findChildren(TextView)}
    assert texts == {
        "Your question": "One?",
        "Thinking of the answer": "hm",
        "Answer": "one",
    }
    assert [n.message for n in view.findChildren(Notice)] == ["Too long."]


def test_a_whole_text_is_copied_as_the_turn_has_it(view: ChatView, wait_until: WaitUntil) -> None:
    conversation = Conversation()
    exchange(conversation, "One?", "*one*")
    view.show_path(conversation.path())
    wait_until(lambda: view.answers[0].rendered)
    conversation.path()[-1].text += " and two"
    view.answers[0].grow(" and two", "")
    body = view.answers[0]._body
    body.selectAll()
    body.copy()
    assert QGuiApplication.clipboard().text() == "*one* and two"


def test_of_a_long_chat_only_what_is_seen_is_made(view: ChatView, wait_until: WaitUntil) -> None:
    conversation = Conversation()
    for i in range(200):
        exchange(conversation, f"Question {i}", f"Answer {i}\n\n" + "word " * (i % 90))
    view.resize(800, 600)
    view.show_path(conversation.path())
    assert len(view.messages) < 30
    assert view.messages[-1].turn is conversation.path()[-1]
    bar = view.verticalScrollBar()
    assert bar.value() == bar.maximum() > 5_000
    middle = conversation.path()[201]
    shown_there = view.reveal(middle)
    assert shown_there is not None
    wait_until(lambda: 0 <= shown_there.y() - bar.value() < 600)
    assert len(view.messages) < 60
    for message, following in pairwise(view.messages):
        assert message.geometry().bottom() < following.y()


def test_what_is_seen_stays_while_heights_become_known(
    view: ChatView, wait_until: WaitUntil
) -> None:
    conversation = Conversation()
    for i in range(60):
        exchange(conversation, f"Question {i}", "- item\n" * (i % 25))
    view.resize(700, 500)
    view.show_path(conversation.path())
    for value in range(view.verticalScrollBar().maximum(), 0, -400):
        view.verticalScrollBar().setValue(value)
        seen = [m for m in view.messages if m.y() + m.height() > view.verticalScrollBar().value()]
        first = seen[0]
        before = first.y() - view.verticalScrollBar().value()
        view._arrange()
        assert abs(first.y() - view.verticalScrollBar().value() - before) <= 2


@pytest.mark.parametrize("at", [0.3, 0.5, 0.8])
def test_what_is_read_stays_where_it_is_at_another_width(
    view: ChatView, wait_until: WaitUntil, at: float
) -> None:
    conversation = Conversation()
    code = "```python\n" + "x = 1\n" * 40 + "```\n\n"
    for i in range(8):
        prose = [f"{i}.{n}: " + "words of it " * 25 + "\n\n" for n in range(30)]
        exchange(conversation, f"Question {i}", "".join(prose[:20]) + code + "".join(prose[20:]))
    view.resize(760, 600)
    view.show_path(conversation.path())
    bar = view.verticalScrollBar()

    def settle() -> None:
        wait_until(lambda: all(a.rendered for a in view.answers))

    def line() -> tuple[AnswerView, str]:
        """At the top of what is seen."""
        answer = next(a for a in view.answers if a.y() <= bar.value() < a.geometry().bottom())
        y = bar.value() + 5 - answer.y() - answer.body.y()
        return answer, answer.body.cursorForPosition(QPoint(0, y)).block().text()[:9]

    settle()
    bar.setValue(round(bar.maximum() * at))
    settle()
    read = line()
    for width in (480, *range(480, 760, 7), 760):  # one after the other, as by the mouse
        view.resize(width, 600)
        settle()
        assert line() == read


def test_branches_are_gone_through(view: ChatView) -> None:
    conversation = Conversation()
    exchange(conversation, "One?", "first")
    question, old = conversation.path()
    conversation.answer(question).text = "second"
    view.show_path(conversation.path(), conversation.beside)
    branches = view.answers[0]._branches
    assert branches._count.text() == "2/2"
    chosen: list[object] = []
    view.chosen.connect(chosen.append)
    branches._back.click()
    assert chosen == [old]
    conversation.choose(old)
    view.show_path(conversation.path(), conversation.beside)
    assert view.answers[0].turn is old
    assert view.answers[0]._branches._count.text() == "1/2"
    assert not view.answers[0]._branches._back.isEnabled()


def test_a_question_is_edited_in_its_place(view: ChatView, qtbot: QtBot) -> None:
    conversation = Conversation()
    exchange(conversation, "One?", "first")
    view.show_path(conversation.path())
    qtbot.waitUntil(lambda: len(view.messages) == 2)  # the newest is made first
    question = view.messages[0]
    assert isinstance(question, Question)
    edited: list[tuple[object, str]] = []
    view.edited.connect(lambda turn, text: edited.append((turn, text)))
    question._edit.click()
    assert question._editor is not None
    field = question._editor.field
    qtbot.keyClicks(field, " And two?")
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert not edited
    assert question._bubble.isVisible()
    question._edit.click()
    assert question._editor.field.toPlainText() == "One? And two?"  # Escape took nothing away
    question._editor._cancel.click()
    question._edit.click()
    qtbot.keyClicks(question._editor.field, " And two?")
    qtbot.keyClick(question._editor.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert edited == [(question.turn, "One? And two?")]


def test_files_go_into_a_question_that_is_edited_or_are_refused(
    view: ChatView, qtbot: QtBot, tmp_path: Path
) -> None:
    view.resize(700, 600)
    question = asked(view, qtbot, "One?", "first")
    edited: list[str] = []
    view.edited.connect(lambda turn, text: edited.append(text))
    question.start_editing()
    editor = question._editor
    assert editor is not None
    good, bad = tmp_path / "good.txt", tmp_path / "bad.bin"
    good.write_text("It is two.")
    bad.write_bytes(b"\0\1\2\xff")
    files, picture = QMimeData(), QMimeData()
    files.setUrls([QUrl.fromLocalFile(str(bad)), QUrl.fromLocalFile(str(good))])
    picture.setImageData(QImage(4, 4, QImage.Format.Format_RGB32))

    def told() -> list[str]:
        return [n.message for n in editor.findChildren(Notice) if n.isVisible()]

    editor.field.insertFromMimeData(files)
    assert not editor._send.isEnabled()  # they would not be in it
    qtbot.waitUntil(editor._send.isEnabled)
    assert len(told()) == 1
    assert "bad.bin" in told()[0]
    editor.field.insertFromMimeData(picture)
    assert told()[1].startswith("The picture is not attached")
    editor._send.click()
    assert edited == ["One?\n\nFile `good.txt`:\n\n```txt\nIt is two.\n```"]


def test_files_of_a_question_that_is_edited_are_chips(view: ChatView, qtbot: QtBot) -> None:
    files = tuple(Attachment(f"{name}.py", "x = 1\n" * 40) for name in ("one", "two"))
    question = asked(view, qtbot, Draft("Compare", files).message(), "Yes.")
    edited: list[str] = []
    view.edited.connect(lambda turn, text: edited.append(text))
    question.start_editing()
    editor = question._editor
    assert editor is not None
    assert editor.field.toPlainText() == "Compare"
    assert len(editor.chips.chips) == 2
    qtbot.mouseClick(editor.chips.chips[0].away, Qt.MouseButton.LeftButton)
    assert len(editor.chips.chips) == 1
    undo = next(b for b in editor.findChildren(QPushButton) if b.text() == "Undo")
    undo.click()
    assert editor._draft().attachments == files
    editor.chips.chips[0].away.click()
    editor.field.clear()
    assert editor._send.isEnabled()  # a file alone is a question too
    editor._send.click()
    assert edited == [files[1].message()]


@pytest.mark.parametrize(("width", "times"), [(360, 4), (700, 4), (700, 18)])
def test_a_question_that_is_edited_is_seen_whole(
    view: ChatView, qtbot: QtBot, width: int, times: int
) -> None:
    view.resize(width, 500)
    question = asked(view, qtbot, "A question of many words that goes on and on. " * times, "Yes.")
    question.start_editing()
    assert question._editor is not None
    field = question._editor.field
    qtbot.waitUntil(lambda: field.height() >= field.document().size().height())
    assert not field.verticalScrollBar().isVisible()
    before = field.height()
    view.resize(width + 200, 500)
    qtbot.waitUntil(lambda: field.height() < before)


def test_an_edited_question_begins_where_its_words_do(view: ChatView, qtbot: QtBot) -> None:
    view.resize(600, 500)
    question = asked(view, qtbot, "مرحبا، كيف حالك؟", "Yes.")
    question.start_editing()
    assert question._editor is not None
    field = question._editor.field
    field.moveCursor(QTextCursor.MoveOperation.Start)
    assert field.cursorRect().left() > field.width() - 40


def test_words_are_found_in_what_is_far_away(view: ChatView, qtbot: QtBot) -> None:
    conversation = Conversation()
    for i in range(80):
        exchange(conversation, f"Question {i}", f"Some needle{i} in the answer\n" * 3)
    view.resize(700, 500)
    view.show_path(conversation.path())
    bar = FindBar()
    qtbot.addWidget(bar)
    bar.start(view, conversation.path(), "needle7")
    assert bar.found == 33
    assert bar._count.text() == "33 of 33"
    bar.go_to(conversation.path()[15].id)
    assert bar._count.text().startswith("1 of")
    seen = {m.turn for m in view.messages}
    assert conversation.path()[15] in seen
    marked = view.answer_of(conversation.path()[15])
    assert marked is not None
    assert len(marked.body.extraSelections()) == 3
    bar.field.setText("nowhere")
    assert bar._count.text() == "Nothing found"


def test_words_are_found_in_what_was_thought(view: ChatView, qtbot: QtBot) -> None:
    conversation = Conversation()
    for _ in range(30):
        exchange(conversation, "Why?", "Because of the needle. " * 20)
        conversation.path()[-1].reasoning = "\n\nA hay and a needle."
        conversation.path()[-1].end = End.DONE
    view.resize(700, 500)
    view.show_path(conversation.path())
    bar = FindBar()
    qtbot.addWidget(bar)
    bar.start(view, conversation.path(), "hay")
    bar.show()
    assert bar.found == 30
    bar.go_to(conversation.path()[21].id)
    answer = view.answer_of(conversation.path()[21])
    assert answer is not None
    thoughts = answer.texts[0][0]
    qtbot.waitUntil(lambda: thoughts.isVisible() and bool(thoughts.extraSelections()))
    (marked,) = thoughts.extraSelections()
    assert marked.cursor.selectedText() == "hay"
    seen = thoughts.mapTo(view.viewport(), thoughts.cursorRect(marked.cursor).center())
    assert view.viewport().rect().contains(seen)
    bar.field.setText("needle")
    assert bar.found == 30 * 21
    bar.leave()
    assert not thoughts.extraSelections()


def test_what_a_search_found_in_an_answer_is_not_sought_in_its_thinking(
    view: ChatView, qtbot: QtBot
) -> None:
    conversation = Conversation()
    exchange(conversation, "Why?", "Because of the needle.")
    exchange(conversation, "How?", "Like this.")
    for answer in conversation.path()[1::2]:
        answer.reasoning, answer.end = "A hay and a needle.", End.DONE
    view.resize(700, 500)
    view.show_path(conversation.path())
    bar = FindBar()
    qtbot.addWidget(bar)
    bar.start(view, conversation.path(), "hay")
    bar.go_to(conversation.path()[3].id)
    assert bar._count.text() == "2 of 2"  # where it is only thought, that is it
    bar.field.setText("needle")
    assert bar.found == 3
    bar.go_to(conversation.path()[1].id)
    assert bar._count.text() == "2 of 3"
    qtbot.waitUntil(lambda: len(view.answers) == 2)
    qtbot.wait(60)
    first, second = view.answers
    assert second._think.isChecked()  # it was shown
    assert not first._think.isChecked()
    assert len(first.body.extraSelections()) == 1


def unfolded(view: ChatView, qtbot: QtBot, at: int) -> Question:
    """The question of a turn of the path, seen whole."""
    question = view.reveal(view._turns[at])
    assert isinstance(question, Question)
    qtbot.waitUntil(lambda: question.body.rendered and question._fold.isVisible())
    question._fold.click()
    qtbot.waitUntil(lambda: question.height() > question.body.height() > 3_000)
    return question


def with_a_long_question(view: ChatView) -> Conversation:
    conversation = Conversation()
    for i in range(30):
        exchange(conversation, f"Question {i}", "word " * 300)
        if i == 8:
            exchange(conversation, "\n".join(f"line {i}" for i in range(200)), "Yes.")
    view.resize(700, 500)
    view.show_path(conversation.path())
    return conversation


def test_a_question_that_is_folded_again_is_seen(view: ChatView, qtbot: QtBot) -> None:
    with_a_long_question(view)
    question, bar = unfolded(view, qtbot, 18), view.verticalScrollBar()
    bar.setValue(question.y() + question.height() - 300)  # where the button is
    question._fold.click()
    qtbot.waitUntil(lambda: question.height() < 500)
    assert 0 <= question.y() - bar.value() < 100
    question._fold.click()  # and where its top is seen, all stays where it is
    before = question.y() - bar.value()
    qtbot.waitUntil(lambda: question.height() > 3_000)
    question._fold.click()
    qtbot.waitUntil(lambda: question.height() < 500)
    assert question.y() - bar.value() == before


def test_what_is_unfolded_stays_so_when_it_was_far_away(view: ChatView, qtbot: QtBot) -> None:
    conversation = with_a_long_question(view)
    thought = conversation.path()[19]
    thought.reasoning, thought.end = "hm\n" * 40, End.DONE
    question, bar = unfolded(view, qtbot, 18), view.verticalScrollBar()
    view.reveal(thought)
    answer = view.answer_of(thought)
    assert answer is not None
    answer._think.click()
    top, height = question.y(), question.height()
    view.go_down()
    assert question.turn.id not in view._shown
    assert thought.id not in view._shown
    bar.setValue(top + height // 2)
    again = view._shown[question.turn.id]
    assert isinstance(again, Question)
    assert again is not question
    qtbot.waitUntil(lambda: again.rendered)
    qtbot.waitUntil(lambda: again.height() == height)
    assert bar.value() - again.y() == height // 2  # nothing moved
    view.reveal(thought)
    answer = view.answer_of(thought)
    assert answer is not None
    assert answer._thoughts.isVisible()


@pytest.mark.parametrize("whole", [False, True])
def test_a_question_that_is_written_in_other_colours_keeps_its_button(
    view: ChatView, look: Theme, qtbot: QtBot, whole: bool
) -> None:
    conversation = Conversation()
    exchange(conversation, "\n".join(f"line {i}" for i in range(900)), "Yes.")
    view.resize(700, 500)
    view.show_path(conversation.path())
    qtbot.waitUntil(lambda: len(view.messages) == 2)  # made in turns, the newest first
    question = view.messages[0]
    assert isinstance(question, Question)
    qtbot.waitUntil(lambda: question.body.rendered)
    question._fold.setChecked(whole)
    question._fold.setFocus()
    before = question._seen.size()
    try:
        look.choose("dark")
        assert not question.body.rendered
        qtbot.waitUntil(lambda: question.body.rendered)
        assert question._fold.hasFocus()
        assert question._seen.size() == before
    finally:
        look.choose("light")
    qtbot.waitUntil(lambda: question.body.rendered)
    assert question._fold.hasFocus()
    look.set_text_size(20)  # what it says then is as high as it is there
    try:
        qtbot.waitUntil(
            lambda: question.body.rendered and question._seen.height() > before.height()
        )
    finally:
        look.set_text_size(15)
    qtbot.waitUntil(lambda: question.body.rendered and question._seen.size() == before)


def test_a_long_question_is_folded(view: ChatView, qtbot: QtBot) -> None:
    conversation = Conversation()
    exchange(conversation, "\n".join(f"line {i}" for i in range(200)), "Yes.")
    view.resize(700, 500)
    view.show_path(conversation.path())
    qtbot.waitUntil(lambda: len(view.messages) == 2)  # made in turns, the newest first
    question = view.messages[0]
    assert isinstance(question, Question)
    qtbot.waitUntil(lambda: question.body.rendered and question._fold.isVisible())
    assert question.height() < 420 < question.body.height()
    folded = question.height()
    qtbot.mouseClick(question._fold, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: question.height() > question.body.height())
    question._fold.click()
    qtbot.waitUntil(lambda: question.height() == folded)
    bar = FindBar()  # what is found in it is seen
    qtbot.addWidget(bar)
    bar.start(view, conversation.path(), "line 150")
    bar.show()
    bar.go(0)
    qtbot.waitUntil(lambda: bool(question.body.extraSelections()))
    (marked,) = question.body.extraSelections()

    def seen() -> bool:
        place = question.body.cursorRect(marked.cursor).center()
        return view.viewport().rect().contains(question.body.mapTo(view.viewport(), place))

    qtbot.waitUntil(lambda: question.height() > folded and seen())


@pytest.mark.parametrize("lines", [1, 12, 17])
def test_a_shorter_question_is_seen_whole(view: ChatView, qtbot: QtBot, lines: int) -> None:
    conversation = Conversation()
    exchange(conversation, "\n".join(["line"] * lines), "Yes.")
    view.resize(700, 500)
    view.show_path(conversation.path())
    qtbot.waitUntil(lambda: len(view.messages) == 2)  # made in turns, the newest first
    question = view.messages[0]
    assert isinstance(question, Question)
    qtbot.waitUntil(lambda: question.body.rendered)
    assert not question._fold.isVisible()
    assert question._seen.size() == question.body.size()


def test_text_that_grows_is_painted_once(
    view: ChatView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it belongs now, and not before that where it was."""
    painted = []
    paint = TextView.paintEvent

    def count(self: TextView, event: QPaintEvent) -> None:
        painted.append(event.rect().top())
        paint(self, event)

    monkeypatch.setattr(TextView, "paintEvent", count)
    conversation = Conversation()
    turn = conversation.answer(conversation.ask("One?"))
    view.resize(760, 500)
    view.show_path(conversation.path())
    (answer,) = view.answers
    answer.grow("word " * 2_000, "")
    qtbot.waitUntil(lambda: answer.rendered)
    qtbot.wait(50)
    for _ in range(5):
        painted.clear()
        turn.text += "more " * 60
        answer.grow("more " * 60, "")
        QApplication.processEvents()
        QApplication.processEvents()
        assert len([top for top in painted if top > 0]) == 1  # the question is above what is seen


def test_the_button_to_the_newest_text_covers_no_words(
    view: ChatView, wait_until: WaitUntil
) -> None:
    conversation = Conversation()
    for i in range(12):
        exchange(conversation, f"Question {i}", "word " * 90)
    view.resize(400, 600)
    view.show_path(conversation.path())
    wait_until(lambda: all(a.rendered for a in view.answers))
    bar = view.verticalScrollBar()
    assert bar.value() == bar.maximum()
    assert not view._down.isVisible()
    assert view.viewport().height() == 600
    bar.setValue(bar.maximum() - 300)
    assert view._down.isVisible()
    assert view._down.y() >= view.viewport().geometry().bottom()
    assert view._down.geometry().bottom() < view.height()
    before = bar.value()
    wait_until(lambda: True)
    assert bar.value() == before  # what is read stays where it is
    strip = QPointF(view.width() / 4, view._down.geometry().center().y())
    turn(view, strip, down=120)
    assert bar.value() < before  # the strip scrolls as the text does
    view._down.click()
    assert bar.value() == bar.maximum()
    assert not view._down.isVisible()
    assert view.viewport().height() == 600


@pytest.mark.parametrize("step", [8, 30, 60])
def test_the_end_is_left_by_small_steps_of_a_touchpad(
    view: ChatView, wait_until: WaitUntil, step: int
) -> None:
    conversation = Conversation()
    answer = conversation.answer(conversation.ask("One?"))
    answer.text = "word word\n\n" * 60
    view.resize(400, 600)
    view.show_path(conversation.path())
    wait_until(lambda: view.answers[0].rendered)
    bar, middle = view.verticalScrollBar(), QPointF(200, 200)
    assert bar.value() == bar.maximum()
    for _ in range(10):
        before = bar.value()
        turn(view.viewport(), middle, down=step)
        view.answers[0].grow("more\n\n", "")
        assert bar.value() < before
    while bar.value() < bar.maximum():  # and followed again from near it
        turn(view.viewport(), middle, down=-step)
    view.answers[0].grow("more\n\n" * 9, "")
    assert bar.value() == bar.maximum()


def test_a_larger_text_is_larger_in_messages(
    view: ChatView, look: Theme, wait_until: WaitUntil
) -> None:
    conversation = Conversation()
    exchange(conversation, "One?", "# Head\n\ntext `code` $x$\n\n```\nblock\n```\n")
    view.show_path(conversation.path())

    def sizes() -> list[float]:
        wait_until(lambda: all(a.rendered for a in view.answers))
        documents = (m.body.document() for m in view.messages)
        return [
            document.find(word).charFormat().fontPointSize()
            for document in documents
            for word in ("One", "Head", "text", "code", "block")
            if not document.find(word).isNull()
        ]

    before = sizes()
    assert len(before) == 5
    try:
        look.set_text_size(20)
        assert sizes() == pytest.approx([size * 20 / 15 for size in before])
    finally:
        look.set_text_size(15)
    assert sizes() == pytest.approx(before)


def test_what_texts_are_read_with_is_imported_while_an_answer_is_waited_for(
    view: ChatView, wait_until: WaitUntil
) -> None:
    inline._parser.cache_clear()
    conversation = Conversation()
    answer = conversation.answer(conversation.ask("One?"))
    live = LiveTurn(conversation, answer, AskParams())
    view.live_of = lambda turn: live if turn is answer else None
    view.show_path(conversation.path())
    wait_until(inline.prepared)


def test_of_many_files_in_a_question_some_are_told(qtbot: QtBot, look: Theme) -> None:
    files = tuple(Attachment(f"{i}.md", "one\n") for i in range(30))
    few, many = file_chips(files[:4]), file_chips(files)
    for chip in (*few, *many):
        qtbot.addWidget(chip)
    assert len(few) == 4
    assert [chip.text() for chip in many] == [
        *(f"{i}.md · 1 line" for i in range(3)),
        "27 more files",
    ]


@pytest.mark.parametrize("words", ["Sum up", ""])
def test_files_in_a_question_are_told_by_their_names(
    view: ChatView, qtbot: QtBot, words: str
) -> None:
    files = (Attachment("notes.md", "one\ntwo\n"), Attachment("x.py", "print('found')\n"))
    conversation = Conversation()
    exchange(conversation, Draft(words, files).message(), "Yes.")
    view.resize(700, 500)
    view.show_path(conversation.path())
    qtbot.waitUntil(lambda: len(view.messages) == 2)
    question = view.messages[0]
    assert isinstance(question, Question)
    chips = question._chips
    assert [chip.text() for chip in chips] == ["notes.md · 2 lines", "x.py · 1 line"]
    assert question.body.toPlainText() == words
    assert question._seen.isVisible() is bool(words)
    assert not question._fold.isVisible()
    folded = question.height()
    question.body.selectAll()
    assert question.body.createMimeDataFromSelection().text() == words
    chips[1].setFocus()
    qtbot.keyClick(chips[1], Qt.Key.Key_Space)
    assert question.body.toPlainText() == conversation.path()[0].text
    assert not any(chip.isVisible() for chip in chips)
    assert question._fold.hasFocus()
    qtbot.waitUntil(lambda: question.height() > folded)
    question._fold.click()
    qtbot.waitUntil(lambda: question.height() == folded)
    assert question.body.toPlainText() == words
    assert not question._fold.isVisible()
    bar = FindBar()  # what is found in one is shown
    qtbot.addWidget(bar)
    bar.start(view, conversation.path(), "found")
    bar.show()
    bar.go(0)
    qtbot.waitUntil(lambda: bool(question.body.extraSelections()))
    assert "found" in question.body.toPlainText()


@pytest.mark.parametrize(
    ("text", "query", "count"),
    [
        ("A **bold** word, `bold` code and *bo*ld.", "bold", 3),
        ("A [link](https://bold.example/bold) to it", "bold", 0),
        ("**Half**way and half\\_way", "halfway", 1),
        ("snake_case, snake\\_case", "snake_case", 2),
        ("## Head\n\n- [x] done\n- [ ] open", "[x]", 0),
        ("| a | b |\n|--|--|\n| one **two** | one two |", "one two", 2),
        ("```js\nlet a = `js`;\n```", "js", 1),  # its language is a label
        ("Costs $x^2$ and two", "x^2", 0),
        ("**", "*", 2),
    ],
)
def test_what_is_counted_is_what_can_be_seen(
    view: ChatView, wait_until: WaitUntil, text: str, query: str, count: int
) -> None:
    conversation = Conversation()
    exchange(conversation, "Why?", text)
    conversation.path()[-1].end = End.DONE
    view.resize(700, 500)
    view.show_path(conversation.path())
    wait_until(lambda: len(view.answers) == 1 and view.answers[0].rendered)
    bar = FindBar()
    bar.setParent(view)
    bar.start(view, conversation.path(), query)
    bar.show()
    assert bar.found == count
    bar.go(0)
    assert len(view.answers[0].body.extraSelections()) == count
    bar.leave()


def test_a_long_chat_is_read_before_words_are_sought_in_it(
    view: ChatView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = Conversation()
    for i in range(40):
        exchange(conversation, f"Question {i}", f"**Needle** {i}")
    view.show_path(conversation.path())
    bar = FindBar()
    qtbot.addWidget(bar)
    bar.start(view, conversation.path())
    qtbot.waitUntil(lambda: not bar._reader.isActive())
    monkeypatch.setattr(find.shown, "lines", lambda source: [])  # it is known
    bar.field.setText("needle 3")
    assert bar.found == 11
    conversation.path()[-1].text += " **more**"
    bar.field.setText("needle 39")
    assert bar.found == 0  # what has grown is read again
    bar.leave()
