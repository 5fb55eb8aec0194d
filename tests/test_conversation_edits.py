"""Whatever is done to a tree of turns, it stays one: by chance, many times over."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.conversation import Conversation, End, Removed, Role, Turn


@dataclass
class Shape:
    """A tree and its path, to compare."""

    turns: dict[str, str | None] = field(default_factory=dict)
    leaf: str | None = None

    @classmethod
    def of(cls, chat: Conversation) -> Shape:
        return cls({t.id: t.parent for t in chat.turns.values()}, chat.leaf)


class Edits(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.chat = Conversation()
        self.undo: list[tuple[Shape, Removed]] = []

    def turn(self, data: st.DataObject, *roles: Role) -> Turn | None:
        fitting = [t for t in self.chat.turns.values() if t.role in roles]
        return data.draw(st.sampled_from(fitting)) if fitting else None

    @rule(text=st.text(max_size=3), answered=st.booleans())
    def ask(self, text: str, answered: bool) -> None:
        question = self.chat.ask(text)
        self.chat.answer(question).text = "answer" if answered else ""
        self.undo.clear()

    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        if question := self.turn(data, Role.USER):
            self.chat.answer(question).text = "another"
            self.undo.clear()

    @rule(data=st.data(), text=st.text(max_size=3))
    def edit(self, data: st.DataObject, text: str) -> None:
        if question := self.turn(data, Role.USER):
            self.chat.answer(self.chat.ask(text, instead_of=question))
            self.undo.clear()

    @rule(data=st.data())
    def choose(self, data: st.DataObject) -> None:
        if turn := self.turn(data, *Role):
            self.chat.choose(turn)
            assert turn in self.chat.path()
            self.undo.clear()

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if turn := self.turn(data, *Role):
            before = Shape.of(self.chat)
            self.undo.append((before, self.chat.remove(turn)))
            assert turn.id not in self.chat.turns

    @precondition(lambda self: self.undo)
    @rule()
    def restore(self) -> None:
        before, removed = self.undo.pop()
        assert self.chat.restore(removed)
        assert Shape.of(self.chat) == before

    @rule(data=st.data())
    def lose_rows(self, data: st.DataObject) -> None:
        """As a damaged database would: the rest is one tree again, and nothing more is lost."""
        turns = list(self.chat.turns.values())
        kept = [t for t in turns if data.draw(st.booleans())]
        self.chat = Conversation()
        self.chat.adopt(kept)
        assert {t.id for t in kept} <= set(self.chat.turns)
        self.undo.clear()

    @invariant()
    def it_is_a_tree_of_turns(self) -> None:
        turns = self.chat.turns
        places = [t.place for t in turns.values()]
        assert places == sorted(set(places))
        for turn in turns.values():
            parent = turns[turn.parent] if turn.parent else None
            if turn.role is Role.ASSISTANT:
                assert parent is not None
                assert parent.role is Role.USER
            else:
                assert parent is None or parent.role is not Role.USER
            assert len(self.chat.path(turn)) <= len(turns)
            assert turn in self.chat.beside(turn)
        assert (self.chat.leaf is None) == (not turns)

    @invariant()
    def a_model_gets_turns_by_turns(self) -> None:
        for turn in self.chat.turns.values():
            if turn.role is Role.SYSTEM:
                continue
            roles = [m.role for m in self.chat.messages(turn)]
            assert roles[0] is Role.USER
            assert all(a is not b for a, b in pairwise(roles))
            goes_on = turn.role is Role.ASSISTANT and turn.said
            assert roles[-1] is (Role.ASSISTANT if goes_on else Role.USER)


TestEdits = Edits.TestCase
TestEdits.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_an_answer_that_broke_off_can_be_gone_on_with() -> None:
    chat = Conversation()
    answer = chat.answer(chat.ask("Why?"))
    assert not answer.continues
    answer.text, answer.end = "Beca", End.STOPPED
    assert answer.continues
    assert [m.content for m in chat.messages(answer)] == ["Why?", "Beca"]


def test_what_follows_a_removed_exchange_moves_up() -> None:
    chat = Conversation()
    for n in "123":
        chat.answer(chat.ask(n)).text = f"answer {n}"
    _, _, second, *_ = chat.path()
    removed = chat.remove(second)
    assert [t.text for t in chat.path()] == ["1", "answer 1", "3", "answer 3"]
    assert chat.restore(removed)
    assert [t.text for t in chat.path()][2:4] == ["2", "answer 2"]


def test_what_follows_a_removed_answer_goes_to_the_one_beside_it() -> None:
    chat = Conversation()
    question = chat.ask("1")
    first, second = chat.answer(question), chat.answer(question)
    first.text, second.text = "first", "second"
    chat.choose(second)
    chat.answer(chat.ask("2")).text = "more"
    chat.remove(second)
    assert [t.text for t in chat.path()] == ["1", "first", "2", "more"]


def test_a_removal_is_not_undone_where_its_place_is_gone() -> None:
    chat = Conversation()
    chat.answer(chat.ask("1")).text = "one"
    question, answer = chat.path()
    chat.answer(chat.ask("2")).text = "two"
    inner = chat.remove(chat.path()[2])
    chat.remove(question)
    assert not chat.turns
    assert not chat.restore(inner)
    assert answer.id not in chat.turns
