"""How people ask: from the nouns, verbs and questions of a topic to many prompts."""

from __future__ import annotations

import random
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

GUIDE = Path(__file__).with_name("guide.toml")

NOUN_FORMS = (
    "what is {}", "what's {}", "whats {}", "what are {}", "explain {}", "tell me about {}",
    "what does {} mean", "can you explain {}", "define {}", "{}", "what do you mean by {}",
    "help me understand {}", "I do not understand {}", "describe {}", "what about {}",
    "I want to know more about {}", "what is the meaning of {}", "what do you know about {}",
    "could you tell me what {} is", "what exactly is {}", "{}, what is that",
    "explain {} in simple words", "give me a short explanation of {}", "is there {}",
    "I keep reading about {}", "what is meant by {}", "I have a question about {}",
)  # fmt: skip
VERB_FORMS = (
    "how do I {}", "how can I {}", "how to {}", "can I {}", "I want to {}", "where can I {}",
    "is it possible to {}", "show me how to {}", "help me {}", "what is the way to {}",
    "I would like to {}", "what do I have to do to {}", "how does one {}", "is there a way to {}",
    "I need to {}", "tell me how to {}", "can you tell me how I {}", "what must I press to {}",
)  # fmt: skip
QUESTION_FORMS = (
    "{}", "{}", "{}", "{}", "can you tell me {}", "do you know {}", "I want to know {}", "{}, do you know",
    "could you explain {}", "explain to me {}", "my question is {}", "I would like to know {}",
    "can somebody tell me {}", "help me: {}", "I ask myself {}", "a friend asked me {}", "tell us {}",
    "I just saw this, {}", "maybe you know {}", "{}, can you explain", "would you tell me {}",
)  # fmt: skip
SYNONYMS: dict[str, tuple[str, ...]] = {
    "how": ("in which way", "in what way"), "why": ("how come", "for what reason", "why exactly"),
    "explain": ("describe", "clarify", "talk about"), "show": ("display", "present"),
    "change": ("adjust", "modify", "alter", "set"), "start": ("launch", "begin", "open"),
    "find": ("locate", "see", "get at"), "choose": ("pick", "select", "take"),
    "answer": ("reply", "response"), "answers": ("replies", "responses", "results"),
    "chat": ("conversation", "talk"), "chats": ("conversations", "talks", "messages"),
    "app": ("program", "application", "tool", "software"), "big": ("large", "huge"),
    "computer": ("machine", "PC", "laptop"), "machine": ("computer", "PC", "laptop"),
    "delete": ("erase", "remove", "drop"), "stop": ("halt", "end", "interrupt"),
    "picture": ("image", "photo"), "pictures": ("images", "photos"), "old": ("earlier", "past", "previous"),
    "fast": ("quick", "speedy"), "slow": ("sluggish", "slower"), "slower": ("less fast", "more slow"),
    "switch": ("change", "move"), "another": ("a different", "some other"), "use": ("work with", "apply"),
    "same": ("equal", "identical"), "run": ("execute", "work", "start"), "mean": ("stand for", "say"),
    "where": ("in which place", "whereabouts"), "need": ("require", "want"), "kept": ("stored", "saved"),
    "model": ("model", "language model", "AI"), "do": ("do", "actually do"), "twice": ("two times", "again"),
    "can": ("could", "may", "might"), "what": ("what", "what exactly"), "text": ("text", "writing", "output"),
    "crashes": ("crashed", "has crashed", "dies", "closes by itself"), "is": ("is", "was"),
    "which": ("what", "which"), "stored": ("saved", "kept", "put"), "different": ("other", "unlike"),
}  # fmt: skip
FILLERS = (
    "really",
    "just",
    "actually",
    "now",
    "maybe",
    "exactly",
    "even",
    "simply",
    "again",
    "still",
)
OPENINGS = (
    "hi, ", "hello, ", "hey, ", "hello! ", "please tell me, ", "quick question: ", "so, ", "ok, ",
    "one question: ", "sorry, ", "tell me, ", "just wondering, ", "another thing: ", "and ",
    "I wonder, ", "good morning, ", "question: ", "okay so ", "now ", "well, ", "but ",
)  # fmt: skip
ENDINGS = (" please", ", please", " in this app", " here", " exactly", " then", ", thanks",
           " actually", " in Slipstream", " again", " by the way")  # fmt: skip
MARKS = ("?", "?", "?", "?", "", "", "", " ?", "??", ".", "!", "...")
SMALL_WORDS = frozenset("a an the is are do does of to i you it in for me".split())


@dataclass(frozen=True)
class Topic:
    """One thing the guide knows; the fields are described at the head of guide.toml."""

    name: str
    label: str
    answer: str
    more: str
    nouns: tuple[str, ...] = ()
    do: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()

    def draw(self, rng: random.Random) -> str:
        """A random prompt, each group of phrasings weighted by the square root of its size."""
        groups = [
            [form.format(noun) for noun in self.nouns for form in NOUN_FORMS],
            [form.format(verb) for verb in self.do for form in VERB_FORMS],
            [form.format(question) for question in self.ask for form in QUESTION_FORMS],
        ]
        (group,) = rng.choices(groups, [len(group) ** 0.5 for group in groups])
        return vary(rng, rng.choice(group))


@cache
def topics() -> tuple[Topic, ...]:
    """The guide, in file order."""
    tables = tomllib.loads(GUIDE.read_text(encoding="utf-8"))
    return tuple(
        Topic(name, **{key: tuple(v) if isinstance(v, list) else v for key, v in table.items()})
        for name, table in tables.items()
    )


def normal(prompt: str) -> str:
    """Lower case, letters and digits only: two prompts with equal normal form count as the same."""
    return " ".join(re.findall(r"[a-z0-9]+", prompt.lower()))


def vary(rng: random.Random, prompt: str) -> str:
    """The same question as another person would type it: wrapping, case, marks, slips."""
    if rng.random() < 0.25:
        prompt = rng.choice(OPENINGS) + prompt
    if rng.random() < 0.12:
        prompt += rng.choice(ENDINGS)
    if rng.random() < 0.35:
        prompt = _synonym(rng, prompt)
    if rng.random() < 0.12:
        prompt = _drop_word(rng, prompt)
    if rng.random() < 0.08:
        prompt = _insert_filler(rng, prompt)
    if rng.random() < 0.20:
        prompt = _slip(rng, prompt)
    case = rng.random()
    if case < 0.45:
        prompt = prompt[0].upper() + prompt[1:]
    elif case < 0.80:
        prompt = prompt.lower()
    elif case < 0.83:
        prompt = prompt.upper()
    return prompt + rng.choice(MARKS)


def _drop_word(rng: random.Random, prompt: str) -> str:
    """Without one word, mostly a small one."""
    words = prompt.split(" ")
    small = [i for i, word in enumerate(words) if word.lower() in SMALL_WORDS]
    if len(words) > 3:
        del words[rng.choice(small) if small and rng.random() < 0.7 else rng.randrange(len(words))]
    return " ".join(words)


def _synonym(rng: random.Random, prompt: str) -> str:
    """With each word that has synonyms replaced half of the time."""
    words = prompt.split(" ")
    swapped = [
        rng.choice(SYNONYMS[word]) if word in SYNONYMS and rng.random() < 0.5 else word
        for word in words
    ]
    return " ".join(swapped)


def _insert_filler(rng: random.Random, prompt: str) -> str:
    words = prompt.split(" ")
    words.insert(rng.randint(1, len(words)), rng.choice(FILLERS))
    return " ".join(words)


def _slip(rng: random.Random, prompt: str) -> str:
    """One slip of the finger in a word of four letters or more."""
    words = list(re.finditer(r"[A-Za-z]{4,}", prompt))
    if not words:
        return prompt
    word = rng.choice(words)
    at = rng.randrange(word.start() + 1, word.end() - 1)
    left, char, right = prompt[:at], prompt[at], prompt[at + 1 :]
    slips = (
        left + right,
        left + char * 2 + right,
        left + right[0] + char + right[1:],
        left + rng.choice("abcdefghijklmnopqrstuvwxyz") + right,
    )
    return rng.choice(slips)
