"""A conversation: what was asked and answered. No window, no engine, no database.

Turns form a tree. A question that is put anew and an answer that is made anew stand
beside the old one, under the same parent; nothing is destroyed unless it is removed. What
is shown, and what a model is given, is one path of the tree: from the first turn to the
`leaf`. Questions and system turns hang under answers or begin the tree, answers hang under
questions; so what stands beside a turn is of its kind.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Final

from app.presets import ChatOptions
from app.titles import LONGEST, title_of

UNNAMED: Final = "New chat"


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class End(StrEnum):
    """Why an answer does not go on."""

    COMING = ""  # it does, or will
    DONE = "done"  # whoever made it ended it; its figures say why
    STOPPED = "stopped"  # by the user
    REPLACED = "replaced"  # by another answer to the same question, or another question
    RELOADED = "reloaded"  # a model was loaded, another one or the same anew
    CLOSED = "closed"  # the window was closed
    LOST = "lost"  # the program ended without a word
    LOOPED = "looped"  # it repeated itself without end
    FAILED = "failed"  # `Turn.error` says why


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation. `reasoning` is an assistant's thinking, if any."""

    role: Role
    content: str
    reasoning: str = ""


def _new_id() -> str:
    return os.urandom(16).hex()


@dataclass(slots=True, eq=False)
class Turn:
    """A question, or an answer as far as it has come. The one owner of its text.

    `figures` tells how an answer was made, once it is; what it is, is the business of who
    made it. `error` tells why it was not. `context` counts the tokens of the model's
    context that are in use at the end of an answer, 0 where that is not known. `thought_ms`
    is how long the reasoning took, `created` seconds since 1970, `place` its place in the
    order in which turns came. `draft` is what the user has begun to write in its place; no file
    keeps it.
    """

    role: Role
    parent: str | None
    text: str = ""
    reasoning: str = ""
    figures: object | None = None
    error: Exception | None = None
    context: int = 0
    id: str = field(default_factory=_new_id)
    end: End = End.COMING
    thought_ms: int = 0
    created: float = field(default_factory=time.time)
    place: int = 0
    draft: str = ""

    @property
    def said(self) -> bool:
        """Whether there is anything of it."""
        return bool(self.text or self.reasoning)

    @property
    def continues(self) -> bool:
        """Whether it is an answer that broke off and can be gone on with."""
        return self.role is Role.ASSISTANT and self.said and self.end not in (End.COMING, End.DONE)


@dataclass(frozen=True, slots=True)
class Removed:
    """What `Conversation.remove` took away, for `restore`."""

    turns: tuple[Turn, ...]
    moved: tuple[tuple[str, str | None], ...]  # ids of turns that hang elsewhere now: from where
    leaf: str | None  # before
    left: str | None  # and after


@dataclass(slots=True, eq=False)
class Conversation:
    """`turns` by id, in the order in which they came; `leaf` is the last one of the path.

    `name` is the user's own; `used` and `created` are seconds since 1970. `draft` is what was
    written and not sent, `options` what holds for this chat alone, both as JSON: see
    `app.drafting` and `app.presets`. `start` is the id of the first turn that a model is still
    given (None: all).
    """

    id: str = field(default_factory=_new_id)
    turns: dict[str, Turn] = field(default_factory=dict)
    leaf: str | None = None
    name: str = ""
    pinned: bool = False
    created: float = field(default_factory=time.time)
    used: float = field(default_factory=time.time)
    draft: str = ""
    options: str = ""
    start: str | None = None

    # --- growing ------------------------------------------------------------------

    def ask(self, text: str, *, instead_of: Turn | None = None) -> Turn:
        """A new question at the end of the path, or beside the one that it stands for.

        Where the path ends with a question that has no answer, the new one takes its place.
        """
        if instead_of is None and self.leaf is not None:
            last = self.turns[self.leaf]
            instead_of = last if last.role is Role.USER else None
        parent = self.leaf if instead_of is None else instead_of.parent
        return self._add(Turn(Role.USER, parent, text, end=End.DONE))

    def answer(self, question: Turn) -> Turn:
        """A new answer to `question`, empty yet, beside those that it has."""
        return self._add(Turn(Role.ASSISTANT, question.id))

    # --- reading ------------------------------------------------------------------

    def path(self, leaf: Turn | None = None) -> tuple[Turn, ...]:
        """The turns from the first one to `leaf`, which is the conversation's own by default."""
        turns: list[Turn] = []
        at = self.leaf if leaf is None else leaf.id
        while at is not None:
            turns.append(self.turns[at])
            at = turns[-1].parent
        return tuple(reversed(turns))

    def given(self, leaf: Turn | None = None) -> tuple[Turn, ...]:
        """What a model is given of the path: all of it, or what is left from `start` on."""
        path = self.path(leaf)
        ids = [turn.id for turn in path]
        return path[ids.index(self.start) :] if self.start in ids else path

    def upcoming(self, text: str) -> tuple[ChatMessage, ...]:
        """What a model would be given if `text` were asked now."""
        question = Turn(Role.USER, self.leaf, text)
        turns = {**self.turns, question.id: question}
        asked = Conversation(turns=turns, leaf=question.id, options=self.options, start=self.start)
        return asked.messages(question)

    def beside(self, turn: Turn) -> tuple[Turn, ...]:
        """All turns with the parent of `turn`, itself among them, in the order they came."""
        return self.below(turn.parent)

    def below(self, parent: str | None) -> tuple[Turn, ...]:
        """The turns that hang under one, or begin the tree, in the order they came."""
        return tuple(t for t in self.turns.values() if t.parent == parent)

    def messages(self, answer: Turn) -> tuple[ChatMessage, ...]:
        """The path to `answer`, for a model that is to make it, or to go on with it.

        What there is of the answer is the last message then. Questions before it that have
        no answer are left out: a prompt that was too long would make every later one too
        long as well, and templates want turns.
        """
        question = self.turns[answer.parent or ""] if _is_answer(answer) else answer
        path = self.given(answer)
        system = ChatOptions.of_json(self.options).system
        result = [ChatMessage(Role.SYSTEM, system)] if system.strip() else []
        for turn, following in pairwise(path[: path.index(question) + 1]):
            answered = following.role is Role.ASSISTANT and following.said
            if answered if turn.role is Role.USER else turn.said:
                result.append(_message(turn))
        result.append(_message(question))
        if answer is not question and answer.said:
            result.append(_message(answer))
        return tuple(result)

    @property
    def last_question(self) -> Turn | None:
        """The newest question of the path."""
        return next((t for t in reversed(self.path()) if t.role is Role.USER), None)

    @property
    def last_answer(self) -> Turn | None:
        """The newest answer of the path."""
        return next((t for t in reversed(self.path()) if t.role is Role.ASSISTANT), None)

    @property
    def context(self) -> int:
        """Tokens of the model's context in use at the end of the path, as far as known."""
        return next((t.context for t in reversed(self.path()) if t.context), 0)

    @property
    def blank(self) -> bool:
        """Whether nothing was made of it yet, or all of that is gone."""
        return not (self.turns or self.draft or self.name or self.options)

    @property
    def title(self) -> str:
        """The user's name for it, or what its first questions are about."""
        if self.name:
            return self.name
        questions = [t.text for t in self.path() if t.role is Role.USER]
        titles = (title for title in map(title_of, questions) if title)
        return next(titles, "") or " ".join("".join(questions)[:LONGEST].split()) or UNNAMED

    # --- branches -----------------------------------------------------------------

    def choose(self, turn: Turn) -> None:
        """Have the path go through `turn`, and on to the newest there is below it."""
        newest: dict[str | None, str] = {t.parent: t.id for t in self.turns.values()}
        at = turn.id
        while at in newest:
            at = newest[at]
        self.leaf = at

    def remove(self, turn: Turn) -> Removed:
        """Take away a question with its answers, or one of several answers.

        What follows stays, and moves up to where the removed stood; what follows an answer
        goes to the one beside it. The last answer of a question takes the question along.
        """
        beside = [t for t in self.beside(turn) if t is not turn]
        if turn.role is Role.SYSTEM:
            gone, heir = [turn], turn.parent
        elif turn.role is Role.ASSISTANT and beside:
            gone, heir = [turn], beside[-1].id
        else:
            question = self.turns[turn.parent] if _is_answer(turn) and turn.parent else turn
            gone, heir = [question, *self.below(question.id)], question.parent
        ids = {t.id for t in gone}
        moved = [t for t in self.turns.values() if t.parent in ids and t.id not in ids]
        before = self.leaf
        origins = tuple((t.id, t.parent) for t in moved)
        for follower in moved:
            follower.parent = heir
        for t in gone:
            del self.turns[t.id]
        if before in ids:
            self._choose_near(heir)
        return Removed(tuple(gone), origins, before, self.leaf)

    def restore(self, removed: Removed) -> bool:
        """Undo a `remove`; what came since stays. False where what it hung under is gone too."""
        parent = removed.turns[0].parent
        if parent is not None and parent not in self.turns:
            return False
        turns = {**self.turns, **{t.id: t for t in removed.turns}}
        self.turns = {t.id: t for t in sorted(turns.values(), key=lambda t: t.place)}
        for id_, parent in removed.moved:
            if id_ in self.turns:
                self.turns[id_].parent = parent
        if self.leaf == removed.left:
            self.leaf = removed.leaf
        return True

    def adopt(self, turns: Iterable[Turn]) -> int:
        """Take turns in the order in which they came, from a place that may have lost some.

        One whose parent is missing, or is not of the kind that it can follow, hangs under
        the last one before it that it can. Returns how many had to.
        """
        mended = 0
        for turn in turns:
            parent = self.turns.get(turn.parent) if turn.parent is not None else None
            lost = turn.parent is not None and parent is None
            if lost or not _fits(turn, parent):
                mended += 1
                fitting = (t for t in reversed(self.turns.values()) if _fits(turn, t))
                parent = next(fitting, None)
                if parent is None and _is_answer(turn):  # the question is lost
                    asked = Turn(Role.USER, None, end=End.DONE, created=turn.created)
                    parent = self._add(asked)
                turn.parent = parent.id if parent else None
            self._add(turn)
        return mended

    def _choose_near(self, heir: str | None) -> None:
        self.leaf = None
        if heir is not None:
            self.choose(self.turns[heir])
        elif first := self.below(None):
            self.choose(first[-1])

    def _add(self, turn: Turn) -> Turn:
        last = next(reversed(self.turns.values())).place if self.turns else -1
        turn.place = max(turn.place, last + 1)
        self.turns[turn.id] = turn
        self.leaf = turn.id
        return turn


def _is_answer(turn: Turn) -> bool:
    return turn.role is Role.ASSISTANT


def _fits(turn: Turn, parent: Turn | None) -> bool:
    """Whether `turn` can hang under `parent`."""
    if _is_answer(turn):
        return parent is not None and parent.role is Role.USER
    return parent is None or parent.role is not Role.USER


def _message(turn: Turn) -> ChatMessage:
    return ChatMessage(turn.role, turn.text, turn.reasoning)
