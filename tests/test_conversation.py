"""Turns are a tree, of which one path is shown and asked about; nothing is destroyed."""

from __future__ import annotations

from app.conversation import ChatMessage, Conversation, Role, Turn


def exchange(conversation: Conversation, question: str, answer: str, reasoning: str = "") -> Turn:
    turn = conversation.answer(conversation.ask(question))
    turn.text, turn.reasoning = answer, reasoning
    return turn


def test_questions_and_answers_follow_each_other() -> None:
    conversation = Conversation()
    exchange(conversation, "One?", "1", "hm")
    exchange(conversation, "Two?", "2")
    assert [t.text for t in conversation.path()] == ["One?", "1", "Two?", "2"]
    question = conversation.ask("Three?")
    assert conversation.messages(question) == (
        ChatMessage(Role.USER, "One?"),
        ChatMessage(Role.ASSISTANT, "1", "hm"),
        ChatMessage(Role.USER, "Two?"),
        ChatMessage(Role.ASSISTANT, "2"),
        ChatMessage(Role.USER, "Three?"),
    )


def test_an_answer_made_anew_stands_beside_the_old_one() -> None:
    conversation = Conversation()
    old = exchange(conversation, "One?", "first")
    question = conversation.last_question
    assert question is not None
    new = conversation.answer(question)
    new.text = "second"
    assert [t.text for t in conversation.path()] == ["One?", "second"]
    assert conversation.beside(new) == (old, new)
    assert conversation.path(old) == (question, old)
    assert conversation.messages(question) == (ChatMessage(Role.USER, "One?"),)


def test_a_question_put_anew_stands_beside_the_old_one() -> None:
    conversation = Conversation()
    exchange(conversation, "One?", "1")
    old = exchange(conversation, "Two?", "2")
    asked = conversation.last_question
    assert asked is not None
    edited = conversation.ask("2 or 3?", instead_of=asked)
    assert [t.text for t in conversation.path()] == ["One?", "1", "2 or 3?"]
    assert conversation.beside(edited) == (asked, edited)
    assert conversation.path(old)[-1].text == "2"
    assert [m.content for m in conversation.messages(edited)] == ["One?", "1", "2 or 3?"]


def test_the_first_question_can_be_put_anew() -> None:
    conversation = Conversation()
    exchange(conversation, "One?", "1")
    first = conversation.path()[0]
    edited = conversation.ask("Uno?", instead_of=first)
    assert conversation.path() == (edited,)
    assert conversation.beside(first) == (first, edited)
    assert conversation.title == "Uno?"


def test_a_question_without_an_answer_is_left_out() -> None:
    conversation = Conversation()
    exchange(conversation, "Too long", "")
    exchange(conversation, "Only thought about", "", "hm")
    question = conversation.ask("And now?")
    assert [m.content for m in conversation.messages(question)] == [
        "Only thought about",
        "",
        "And now?",
    ]


def test_a_system_turn_stays() -> None:
    conversation = Conversation()
    system = conversation._add(Turn(Role.SYSTEM, None, "Be brief."))
    exchange(conversation, "One?", "1")
    question = conversation.ask("Two?")
    assert conversation.messages(question)[0] == ChatMessage(Role.SYSTEM, "Be brief.")
    assert conversation.path()[0] is system


def test_it_is_named_after_its_first_question() -> None:
    conversation = Conversation()
    assert conversation.title == "New chat"
    assert conversation.last_question is conversation.last_answer is None
    conversation.ask("Hi")
    assert conversation.title == "Hi"
    conversation.answer(conversation.path()[0]).text = "Hello!"
    conversation.ask("word \t" * 30)
    assert conversation.title == f"{'Word' + ' word' * 8}…"
    conversation.name = "Words"
    assert conversation.title == "Words"


def test_the_use_of_context_is_that_of_the_newest_answer_that_tells_it() -> None:
    conversation = Conversation()
    assert conversation.context == 0
    exchange(conversation, "One?", "1").context = 20
    conversation.answer(conversation.ask("Two?"))
    assert conversation.context == 20


def test_ids_are_of_one_turn_each() -> None:
    ids = {turn.id for c in (Conversation(), Conversation()) for turn in (c.ask("a"), c.ask("b"))}
    assert len(ids) == 4
