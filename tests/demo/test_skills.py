"""What the guide is taught is right: sums, lists, code that runs, texts that are copied."""

from __future__ import annotations

import json
import random
import re
import runpy
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from assets.demo.train import skills
from assets.demo.train.phrasing import gerund, topics

DRAWS = 2000


def drawn(skill: skills.Skill) -> Iterator[skills.Turn]:
    rng = random.Random(skill.__name__)
    for _ in range(DRAWS):
        yield from skill(rng)


@pytest.mark.parametrize("what", skills.FUNCTIONS)
def test_functions_run(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("hello", encoding="utf-8")
    name, arguments, body, truth = skills.FUNCTIONS[what]
    scope: dict[str, object] = {}
    exec(f"def {name}({arguments}):\n    {body}", scope)
    assert eval(truth, scope) is True


@pytest.mark.parametrize("what", skills.SCRIPTS)
def test_scripts_run(what: str, tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(skills.SCRIPTS[what], encoding="utf-8")
    runpy.run_path(str(file))


def test_code_is_fenced_and_reads_as_its_language() -> None:
    for turn in drawn(skills.code):
        found = re.fullmatch(r"```(\w+)\n(.+)\n```", turn.answer, re.DOTALL)
        assert found, turn
        language, text = found.groups()
        if language == "json":
            assert all(str(value) in turn.user for value in json.loads(text).values())
        elif language == "python":
            compile(text, "answer", "exec")


def test_sums_are_right_and_stay_within_what_is_promised() -> None:
    for turn in drawn(skills.arithmetic):
        if found := re.fullmatch(r"(\d+) ([-+*/]) (\d+) = (-?\d+)\.", turn.answer):
            a, sign, b, value = found.groups()
            assert eval(f"{a} {sign} {b}") == int(value)
            assert max(int(a), int(b), int(value)) <= 100
            assert value.lstrip("-") in turn.thought
        elif turn.answer != skills.TOO_LARGE:
            assert re.fullmatch(r"(\d+) is larger than (\d+)\.", turn.answer), turn


def test_counting_counts() -> None:
    for turn in drawn(skills.counting):
        items = turn.answer.split(", ")
        steps = (
            {int(b) - int(a) for a, b in pairwise(items)}
            if items[0].lstrip("-").isdigit()
            else {ord(b) - ord(a) for a, b in pairwise(items)}
        )
        assert len(steps) == 1, turn


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "zero"), (12, "twelve"), (20, "twenty"), (45, "forty-five"), (100, "a hundred")],
)
def test_numbers_in_words(number: int, words: str) -> None:
    assert skills.spelled(number) == words


def test_texts_are_repeated_and_changed_in_one_word() -> None:
    for turn in drawn(skills.echo):
        assert turn.user.endswith(turn.answer)
    for turn in drawn(skills.rewrite):
        before = turn.user.partition(":")[2].strip().split()
        after = turn.answer.split()
        assert len(before) == len(after), turn
        assert before != after, turn
        new = turn.thought.removeprefix("The same text, with ").partition(" in place")[0]
        assert all(new in b for a, b in zip(before, after, strict=True) if a != b), turn


def test_every_answer_has_a_thought() -> None:
    for skill in (skills.guide, skills.foreign, skills.follow_up, skills.unknown, skills.listing):
        assert all(len(turn.thought.split()) >= 3 for turn in drawn(skill))


def test_shorter_is_the_first_sentence() -> None:
    for topic in topics():
        assert topic.answer.startswith(topic.short)
        assert topic.short[-1] in ".!"
        assert 3 <= len(topic.short.split()) <= 40, topic.name


def test_questions_in_other_languages_are_answered_with_an_apology() -> None:
    assert all(turn.answer.startswith(skills.APOLOGY) for turn in drawn(skills.foreign))


def test_answers_differ() -> None:
    answers = [topic.answer for topic in topics()] + list(skills.REFUSALS.values())
    assert len(set(answers)) == len(answers)


@pytest.mark.parametrize(
    ("phrase", "noun"),
    [
        ("get a model", "getting a model"),
        ("make it dark", "making it dark"),
        ("open the menu", "opening the menu"),
        ("stop you", "stopping you"),
        ("see all shortcuts", "seeing all shortcuts"),
        ("begin", "beginning"),
        ("find a word", "finding a word"),
        ("read the meters", "reading the meters"),
    ],
)
def test_a_verb_becomes_a_noun(phrase: str, noun: str) -> None:
    assert gerund(phrase) == noun
