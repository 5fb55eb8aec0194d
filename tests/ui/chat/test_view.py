"""A path of turns on the page: what is there already stays, whatever else changes."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.conversation import Conversation, End
from app.errors import ContextFullError
from app.ui.chat.message import AnswerView, Question
from app.ui.chat.view import ChatView, Welcome
from app.ui.look.notice import Notice
from app.ui.look.theme import Theme
from app.ui.markdown.text_view import TextView
from tests.ui.conftest import WaitUntil


@pytest.fixture
def view(qtbot: QtBot, look: Theme) -> ChatView:
    result = ChatView()
    qtbot.addWidget(result)
    result.show()
    return result


def exchange(conversation: Conversation, question: str, answer: str) -> None:
    conversation.answer(conversation.ask(question)).text = answer


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
    assert [a._again.isVisibleTo(a._footer) for a in view.answers] == [False, True]


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
    view.show_path(conversation.path())
    wait_until(lambda: view.answers[0].rendered)
    texts = {t.accessibleName(): t.toPlainText() for t in view.findChildren(TextView)}
    assert texts == {
        "Your message": "One?",
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
