"""What the pair is measured on: questions in words and by rules that training does not use.

The questions are those of heldout.toml, each also wrapped, mistyped and shouted by the rules here;
follow-ups, dialogues with values of their own, and texts with open choices. `python -m
assets.demo.train.heldout` tells how many there are of each kind. Training writes them to
heldout.json beside its report: what is measured on the shipped pair elsewhere takes them from there.
"""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from . import skills
from .phrasing import LANGUAGES, topics
from .skills import APOLOGY

FILE = Path(__file__).with_name("heldout.toml")
JSON = Path(__file__).with_name("heldout.json")

FRAMES = (
    "Excuse me: {}", "{} I am curious.", "Hmm. {}", "Dear guide, {}", "{} Thank you in advance!",
    "My boss wants to know: {}", "Listen: {}", "One thing I never understood: {}", "{} Any idea?",
    "Let me ask you this. {}", "Right. {}", "{} My friend asks.", "Perhaps a silly question: {}", "Alright then, {}",
)  # fmt: skip
NEIGHBOURS = {
    "a": "s", "b": "v", "c": "x", "d": "f", "e": "r", "f": "g", "g": "h", "h": "j", "i": "o", "k": "l",
    "l": "k", "m": "n", "n": "m", "o": "p", "p": "o", "r": "t", "s": "d", "t": "z", "u": "i", "w": "e", "y": "u",
}  # fmt: skip
TYPED = {
    "How do I": "howdo i",
    "What is": "wots",
    "Can I": "cani",
    "the ": "teh ",
    "my ": "mi ",
    "Where": "wher",
}
MORE = (
    "What is the reason for that?",
    "Is there more to say about it?",
    "I would like some more details",
)
SHORT = (
    "Can you say it in one sentence?",
    "Put that in fewer words please",
    "I need a shorter version",
)
DEVICE = ("Does that hold on a GPU too?", "Is that different with a graphics card?")
AGAIN = ("Could you say that one more time?", "Repeat what you said please")
Turns = tuple[tuple[str, str], ...]  # what is asked, and the right answer
DIALOGUES: tuple[Turns, ...] = (
    (("My password is walnut-58. Please remember it.", "I will remember it: your password is walnut-58."),
     ("What did I tell you my password was?", "Your password is walnut-58.")),
    (("Hello, my name is Kira", "I will remember it: your name is Kira."), ("do you know my name?", "Your name is Kira.")),
    (("Please keep this in mind: the code is 70315", "I will remember it: your code is 70315."),
     ("Which code did I give you?", "Your code is 70315.")),
    (("My favourite colour is turquoise.", "I will remember it: your favourite colour is turquoise."),
     ("Which is my favourite colour?", "Your favourite colour is turquoise.")),
    (("my lucky number is 4077", "I will remember it: your lucky number is 4077."),
     ("So what is my lucky number again?", "Your lucky number is 4077.")),
    (("The secret word is lemon, remember it", "I will remember it: your secret word is lemon."),
     ("can you say the secret word?", "Your secret word is lemon.")),
    (("I live here: my city is Quito", "I will remember it: your city is Quito."), ("what city is mine?", "Your city is Quito.")),
    (("Count up to twelve for me", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12"), ("What is 17 and 25 together: 17 + 25?", "17 + 25 = 42.")),
)  # fmt: skip


@dataclass(frozen=True)
class Question:
    """`before` are the turns before it, `right` the right answer, "" where any will do.

    `topic` is of the guide; "unknown" and "nonsense" are what is none of it.
    """

    kind: str
    prompt: str
    right: str = ""
    topic: str = ""
    before: tuple[tuple[str, str], ...] = ()


@cache
def tables() -> dict[str, dict[str, Any]]:
    """heldout.toml."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@cache
def questions() -> tuple[Question, ...]:
    """All of them; the same each time."""
    return tuple(_questions(random.Random("heldout")))


def _questions(rng: random.Random) -> Iterator[Question]:
    answers = {topic.name: topic for topic in topics()}
    for name, prompts in tables()["guide"].items():
        for prompt in prompts:
            for kind, asked in _forms(rng, prompt):
                yield Question(f"guide{kind}", asked, answers[name].answer, name)
    for name, prompts in tables()["fresh"].items():
        right = skills.UNKNOWN if name == "unknown" else answers[name].answer
        for prompt in prompts:
            yield Question("fresh", prompt, right, name)
    for language in LANGUAGES:
        for name, prompt in tables()[language].items():
            yield Question("other languages", prompt, APOLOGY + answers[name].answer, name)
        for prompt in tables()["unknown"][language]:
            yield Question("unknown, other languages", prompt, APOLOGY + skills.UNKNOWN, "unknown")
    for prompt in tables()["unknown"]["world"]:
        for kind, asked in _forms(rng, prompt):
            yield Question(f"unknown{kind}", asked, skills.UNKNOWN, "unknown")
    for prompt in tables()["nonsense"]["text"]:
        yield Question("nonsense", prompt, skills.NONSENSE, "nonsense")
    for index, (name, prompts) in enumerate(tables()["guide"].items()):
        topic = answers[name]
        asks, right = (
            (MORE, topic.more), (SHORT, topic.short), (DEVICE, skills.BOTH_DEVICES), (AGAIN, topic.answer),
        )[index % 4]  # fmt: skip
        before = ((prompts[0], topic.answer),)
        yield Question("follow-ups", asks[index // 4 % len(asks)], right, before=before)
    for prompt in tables()["free_text"]["text"]:
        yield Question("free text", prompt)


def _forms(rng: random.Random, prompt: str) -> Iterator[tuple[str, str]]:
    yield "", prompt
    frame = rng.choice(FRAMES)
    asked = frame.format(prompt)
    yield ", wrapped", asked.upper() if rng.random() < 0.15 else asked
    yield ", mistyped", _mistyped(rng, prompt)


def _mistyped(rng: random.Random, prompt: str) -> str:
    """A neighbouring key, and either two words in one or a hasty spelling."""
    places = [m.start() + 1 for m in re.finditer(r"[A-Za-z]{5,}", prompt)]
    if places:
        at = rng.choice(places) + rng.randint(0, 2)
        key = NEIGHBOURS.get(prompt[at].lower(), prompt[at])
        prompt = prompt[:at] + key + prompt[at + 1 :]
    for whole, hasty in TYPED.items():
        if whole in prompt and rng.random() < 0.5:
            prompt = prompt.replace(whole, hasty, 1)
            break
    return prompt.lower().rstrip("?.") if rng.random() < 0.5 else prompt


def prompts() -> Iterator[str]:
    """What training must not contain."""
    for group in tables().values():
        for value in group.values():
            yield from [value] if isinstance(value, str) else value
    yield from (*MORE, *SHORT, *DEVICE, *AGAIN)


def write(file: Path) -> None:
    """heldout.json: `guide` and others (topic, prompt, answers), `free_text`, and as dialogues those
    that the report counts and the follow-ups."""
    found = questions()

    def listed(kind: str) -> list[dict[str, Any]]:
        return [
            {"topic": q.topic, "prompt": q.prompt, "answers": [q.right]}
            for q in found
            if q.kind == kind
        ]

    def spoken(several: Iterable[Turns]) -> list[dict[str, Any]]:
        return [
            {"prompts": [p for p, _ in turns], "answers": [[a] for _, a in turns]}
            for turns in several
        ]

    data = {
        "guide": listed("guide"),
        "other_languages": listed("other languages"),
        "unknown": listed("unknown"),
        "free_text": [q.prompt for q in found if q.kind == "free text"],
        "dialogues": spoken(DIALOGUES),
        "follow_ups": spoken(
            (*q.before, (q.prompt, q.right)) for q in found if q.kind == "follow-ups"
        ),
    }
    file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for kind, count in Counter(question.kind for question in questions()).items():
        print(f"{count:4} {kind}")
