"""The held-out questions: how many, whose, and that training's rules do not give them."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

from assets.demo.train import asked, heldout, phrasing, skills, world
from assets.demo.train.phrasing import LANGUAGES, normal, topics, written

FOUND = heldout.questions()


def test_there_are_enough_of_each_kind() -> None:
    count = Counter(question.kind for question in FOUND)
    assert count["guide"] >= 250
    assert sum(n for kind, n in count.items() if kind.startswith("guide")) >= 400
    assert count["unknown"] >= 75
    assert count["other languages"] >= 80
    assert count["follow-ups"] >= 100
    assert count["nonsense"] >= 20


def test_every_topic_is_asked_for() -> None:
    assert set(heldout.tables()["guide"]) == {topic.name for topic in topics()}
    assert all(len(prompts) >= 2 for prompts in heldout.tables()["guide"].values())
    asked = {normal(question.prompt): question.topic for question in FOUND if question.topic}
    for question in FOUND:
        if question.topic:
            assert asked[normal(question.prompt)] == question.topic, question.prompt


def test_what_is_right_is_what_the_guide_says() -> None:
    answers = {topic.name: topic.answer for topic in topics()} | skills.REFUSALS
    for question in FOUND:
        if question.topic:
            assert question.right.removeprefix(skills.APOLOGY) == answers[question.topic]


def test_they_are_the_same_each_time() -> None:
    heldout.questions.cache_clear()
    assert heldout.questions() == FOUND


def test_its_rules_are_not_those_of_training() -> None:
    taught = {
        normal(form.format(""))
        for form in (
            *(*phrasing.NOUN_FORMS, *phrasing.VERB_FORMS, *phrasing.GERUND_FORMS),
            *phrasing.QUESTION_FORMS,
            *(*phrasing.OPENINGS, *phrasing.ENDINGS),
            *(*skills.FOLLOW_UPS, *skills.SHORTER, *skills.OTHER_DEVICE, *skills.AGAIN),
        )
    }
    rng = random.Random(1)
    taught |= {normal(phrasing.aside(rng)) for _ in range(20_000)}
    asks = (*heldout.MORE, *heldout.SHORT, *heldout.DEVICE, *heldout.AGAIN)
    assert not {normal(form.format("")) for form in (*heldout.FRAMES, *asks)} & taught


def test_its_questions_are_not_those_of_training() -> None:
    taught = {normal(form) for form in world.FORMS}
    taught |= {normal(form) for forms in world.FOREIGN.values() for form in forms}
    for topic in topics():
        taught |= {normal(question) for question in (*topic.ask, *topic.told)}
        for language in LANGUAGES:
            taught |= {normal(question) for question in getattr(topic, language)}
    assert not {normal(prompt) for prompt in heldout.prompts()} & taught


def test_what_is_written_can_be_read_by_what_measures_the_pair(tmp_path: Path) -> None:
    heldout.write(tmp_path / "heldout.json")
    held = json.loads((tmp_path / "heldout.json").read_text(encoding="utf-8"))
    assert all(set(entry) == {"topic", "prompt", "answers"} for entry in held["guide"])
    assert len(held["guide"]) == Counter(q.kind for q in FOUND)["guide"]
    for dialogue in held["dialogues"]:
        assert len(dialogue["prompts"]) == len(dialogue["answers"]) >= 2
    shipped = json.loads(heldout.JSON.read_text(encoding="utf-8"))
    assert set(shipped) <= set(held)


def test_what_a_stranger_asked_is_new_and_was_read() -> None:
    read = asked.marks(asked.LOG.read_text(encoding="utf-8"))
    assert [question for question, _ in read] == list(asked.QUESTIONS)
    assert {mark.split(":")[0] for mark in read.values()} <= {"right", "wrong", "not known"}
    known = {normal(prompt) for prompt in heldout.prompts()}
    for topic in topics():
        known |= {normal(p) for p in (*topic.ask, *topic.told, *topic.do, *topic.nouns)}
        known |= {normal(p) for language in LANGUAGES for p in getattr(topic, language)}
    known |= {normal(p) for prompts in written()["unknown"].values() for p in prompts}
    new = {normal(question) for question in asked.QUESTIONS} - {normal("??")}  # marks alone
    assert not new & known


def test_a_mark_stays_while_the_answer_does() -> None:
    read = asked.marks(asked.write({"a | b?": "x | y"}, {}, "nobody"))
    ((key, mark),) = read.items()
    assert mark == asked.UNREAD
    again = asked.write({"a | b?": "x | y", "c?": "z"}, {key: "right"}, "nobody")
    assert list(asked.marks(again).values()) == ["right", asked.UNREAD]
    assert list(asked.marks(asked.write({"a | b?": "w"}, {key: "right"}, "x")).values()) == [
        asked.UNREAD
    ]
