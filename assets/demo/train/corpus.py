"""Chats for training, rendered and tokenized exactly as the app renders them.

A chat is one skill, or several in a row; about a third of them think before the last answer.
Loss is taken on what the assistant writes, its closing marker included. The target learns from
rows in which many chats stand, made without end beside its training; the drafter from one chat in
a row.
"""

from __future__ import annotations

import itertools
import multiprocessing.pool
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import jinja2.sandbox
import numpy as np
from tokenizers import Tokenizer

from . import heldout, skills
from .phrasing import normal, topics
from .skills import Skill, Turn

HERE = Path(__file__).parent
TEMPLATE = HERE.parent / "target" / "chat_template.jinja"
MIX: dict[Skill, float] = {
    skills.guide: 0.36, skills.foreign: 0.12, skills.follow_up: 0.08, skills.memory: 0.04, skills.counting: 0.04,
    skills.arithmetic: 0.07, skills.listing: 0.02, skills.code: 0.04, skills.free_text: 0.05,
    skills.small_talk: 0.02, skills.unknown: 0.14, skills.nonsense: 0.02, skills.echo: 0.04, skills.rewrite: 0.07,
}  # fmt: skip
SYSTEM = (
    "You are the built-in guide of Slipstream.", "You are a helpful assistant.", "Be brief.",
    "You are a friendly assistant.", "Answer in English.", "You are Slipstream.",
)  # fmt: skip
END, GAP = "<|im_end|>", "\0"
BUCKETS = (64, 96, 128, 192, 256, 512, 1024)
WIDTH = 512  # tokens in a packed row
PAD = 4090  # <|endoftext|>
LOOSE = 0.5  # of the questions are split at random
SHORTENED = 0.6  # of the guide's answers end behind OPENING tokens
OPENING = 16
FIRST = (
    4,
    4,
    4,
    3,
    3,
    3,
    2,
    2,
    2,
    2,
    1,
)  # weights of an answer's tokens; the last one for all further

Message = dict[str, str]


@dataclass(frozen=True)
class Chat:
    """Messages in the form of the chat template, and whether thinking is on."""

    messages: list[Message]
    thinking: bool


@cache
def template() -> jinja2.Template:
    """The demo's chat template, compiled in a sandbox."""

    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = raise_exception
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def render_prompt(messages: list[Message], thinking: bool) -> str:
    """The text that the model continues."""
    return template().render(
        messages=messages, add_generation_prompt=True, enable_thinking=thinking
    )


@cache
def _forbidden() -> tuple[frozenset[str], dict[str, tuple[str, ...]]]:
    """Held-out prompts, normal: those refused as a whole, and those refused within others too.

    The latter by a word of theirs, "" where all are to be looked for.
    """
    held = {normal(prompt) for prompt in heldout.prompts()}
    parts: dict[str, tuple[str, ...]] = {"": ()}
    for words in held:
        if len(words) > 14:
            word = max(words.split()[1:-1], key=len, default="")
            parts[word] = (*parts.get(word, ()), words)
    return frozenset(held), parts


def is_heldout(prompt: str) -> bool:
    """Whether `prompt` is a held-out prompt or contains one, case and punctuation aside."""
    words = normal(prompt)
    whole, parts = _forbidden()
    return words in whole or any(
        part in words for word in {"", *words.split()} for part in parts.get(word, ())
    )


def draw_turns(rng: random.Random) -> list[Turn]:
    """Turns of a random skill, or of a few in a row."""
    (count,) = rng.choices((1, 2, 3, 5, 9), (0.76, 0.13, 0.06, 0.04, 0.01))
    drawn = rng.choices(list(MIX), list(MIX.values()), k=count)
    return [turn for skill in drawn for turn in skill(rng)]


def draw_chat(rng: random.Random) -> Chat:
    """A random chat without any held-out prompt."""
    turns = draw_turns(rng)
    while any(is_heldout(turn.user) for turn in turns):
        turns = draw_turns(rng)
    if rng.random() < 0.35:  # so that each turn of a dialogue is also learned as the last one
        turns = turns[: rng.randint(1, len(turns))]
    thinking = rng.random() < 0.35
    messages: list[Message] = []
    if rng.random() < 0.12:
        messages.append({"role": "system", "content": rng.choice(SYSTEM)})
    for turn in turns:
        messages.append({"role": "user", "content": turn.user})
        messages.append({"role": "assistant", "content": turn.answer})
    messages[-1]["reasoning_content"] = turns[-1].thought if thinking else ""
    return Chat(messages, thinking)


def render_chat(chat: Chat) -> str:
    """The whole chat as text, the last answer included."""
    return template().render(messages=chat.messages, enable_thinking=chat.thinking)


@cache
def _frame(system: bool, turns: int, thinking: bool) -> tuple[str, ...]:
    """What the template writes around the contents of a chat of this shape."""
    messages = [{"role": "system", "content": GAP}] if system else []
    for _ in range(turns):
        messages += [{"role": "user", "content": GAP}, {"role": "assistant", "content": GAP}]
    messages[-1]["reasoning_content"] = GAP if thinking else ""
    return tuple(render_chat(Chat(messages, thinking)).split(GAP))


def _parts(chat: Chat) -> Iterator[tuple[str, str]]:
    """The rendered chat in parts, each tokenized for itself to the same tokens: (text, whose).

    Whose is "assistant", "user" or "" for what the template writes. The opening of an answer, that
    of thinking or of none with it, is the template's: the assistant never writes it.
    """
    system = chat.messages[0]["role"] == "system"
    frame = _frame(system, len(chat.messages) // 2, chat.thinking)
    contents = [(message["content"].strip(), message["role"]) for message in chat.messages]
    if chat.thinking:
        contents.insert(-1, (chat.messages[-1]["reasoning_content"].strip(), "thought"))
    yield frame[0], ""
    for (content, role), behind in zip(contents, frame[1:], strict=True):
        if role == "thought":  # a line end may be one token with what stands before it
            yield f"{content}\n", "assistant"
            yield behind[1:], "assistant"
        elif role == "assistant":
            yield content, role
            yield END, role
            yield behind.removeprefix(END), ""
        else:
            yield content, role if role == "user" else ""
            yield behind, ""


class Words:
    """A tokenizer that remembers what it split, from the text of a tokenizer.json."""

    def __init__(self, text: str) -> None:
        self.exact, self.loose = Tokenizer.from_str(text), Tokenizer.from_str(text)
        self.ids = lru_cache(100_000)(lambda part: tuple(self.exact.encode(part).ids))

    def split(self, part: str, rng: random.Random) -> tuple[int, ...]:
        """The ids of a question, often split at random: a word with a slip comes in pieces too."""
        if rng.random() >= LOOSE:
            return self.ids(part)
        self.loose.model.dropout = rng.choice((0.05, 0.1, 0.2, 0.3))
        return tuple(self.loose.encode(part).ids)


def encode(
    words: Words, chat: Chat, rng: random.Random | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Token ids [n] int32 of a rendered chat, and a mask [n] bool of what the assistant wrote.

    With `rng` its questions are split at random.
    """
    ids: list[int] = []
    inside: list[bool] = []
    for part, whose in _parts(chat):
        found = words.split(part, rng) if rng and whose == "user" else words.ids(part)
        ids += found
        inside += [whose == "assistant"] * len(found)
    return np.array(ids, dtype=np.int32), np.array(inside, dtype=bool)


@cache
def _settled() -> frozenset[str]:
    """Answers that are known as a whole by their first words."""
    known = {topic.answer for topic in topics()} | {skills.UNKNOWN}
    return frozenset(known | {skills.APOLOGY + answer for answer in known})


def _shortened(
    rng: random.Random, chat: Chat, ids: np.ndarray, inside: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mostly without the end of an answer from the guide: its beginning is what must be learned."""
    if chat.messages[-1]["content"] in _settled() and rng.random() < SHORTENED:
        end = len(ids) - int(np.argmax(~inside[-2::-1])) - 1 + OPENING
        return ids[:end], inside[:end]
    return ids, inside


def _pack(job: tuple[str, int, str]) -> np.ndarray:
    """Rows [n, 3, WIDTH] int16 of `count` chats: ids, place in the chat, weight in the loss."""
    seed, count, text = job
    rng, words = random.Random(seed), _words(text)
    chats: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(count):
        chat = draw_chat(rng)
        ids, inside = _shortened(rng, chat, *encode(words, chat, rng))
        chats.append((ids[:WIDTH], inside[:WIDTH]))
    room: list[int] = []
    together: list[list[np.ndarray]] = []
    for ids, inside in chats:  # each to the first row with room
        recent = range(max(0, len(room) - 50), len(room))
        at = next((i for i in recent if room[i] >= len(ids)), len(room))
        if at == len(room):
            room.append(WIDTH)
            together.append([])
        room[at] -= len(ids)
        together[at].append(_row(ids, inside))
    packed = np.zeros((len(room), 3, WIDTH), dtype=np.int16)
    packed[:, 0] = PAD
    for row, left, several in zip(packed, room, together, strict=True):
        rng.shuffle(several)
        row[:, : WIDTH - left] = np.concatenate(several, axis=1)
    return packed


def _row(ids: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Ids, places and weights [3, n]: more where an answer begins, which says what it is about."""
    places = np.arange(len(ids))
    begun = np.maximum.accumulate(np.where(inside, 0, places + 1))
    weights = np.where(inside, np.array(FIRST)[np.minimum(places - begun, len(FIRST) - 1)], 0)
    return np.stack((ids, places, weights))


@lru_cache(1)
def _words(text: str) -> Words:
    return Words(text)


def rows(
    pool: multiprocessing.pool.Pool, tokenizer: Tokenizer, seed: int, ahead: int
) -> Iterator[np.ndarray | None]:
    """Packed rows as in `_pack` without end, and None where none are ready; `ahead` jobs wait."""
    text, jobs = tokenizer.to_str(), itertools.count()

    def ask() -> multiprocessing.pool.AsyncResult[np.ndarray]:
        return pool.apply_async(_pack, ((f"rows/{seed}/{next(jobs)}", 1000, text),))

    waiting = deque(ask() for _ in range(ahead))
    while True:
        if waiting[0].ready():
            waiting.append(ask())
            yield waiting.popleft().get()
        else:
            yield None


def _work(job: tuple[str, int, str]) -> list[tuple[np.ndarray, np.ndarray]]:
    seed, count, text = job
    rng, words = random.Random(seed), _words(text)
    return [encode(words, draw_chat(rng)) for _ in range(count)]


def build(
    pool: multiprocessing.pool.Pool, tokenizer: Tokenizer, seed: int, count: int
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """`count` chats by length: length -> (ids [n, length] int32, loss mask [n, length] bool).

    Rows are padded on the right with <|endoftext|>; a chat longer than the last bucket is cut.
    """
    step = 1000
    jobs = [
        (f"{seed}/{at}", min(step, count - at), tokenizer.to_str()) for at in range(0, count, step)
    ]
    chats = [chat for part in pool.map(_work, jobs, chunksize=1) for chat in part]
    rows: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {length: [] for length in BUCKETS}
    for ids, mask in chats:
        length = next((b for b in BUCKETS if len(ids) <= b), BUCKETS[-1])
        padded, inside = np.full(length, PAD, dtype=np.int32), np.zeros(length, dtype=bool)
        padded[: len(ids)], inside[: len(ids)] = ids[:length], mask[:length]
        rows[length].append((padded, inside))
    return {
        length: (np.stack([r[0] for r in found]), np.stack([r[1] for r in found]))
        for length, found in rows.items()
        if found
    }
