"""Chats for training, rendered and tokenized exactly as the app renders them.

A chat is one skill, or several in a row; about a third of them think before the last answer.
Loss is taken on what the assistant writes, its closing marker included.
"""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2.sandbox
import numpy as np
from tokenizers import Tokenizer

from . import heldout, skills
from .phrasing import normal
from .skills import Skill, Turn

HERE = Path(__file__).parent
TEMPLATE = HERE.parent / "target" / "chat_template.jinja"
MIX: dict[Skill, float] = {
    skills.guide: 0.33, skills.foreign: 0.09, skills.follow_up: 0.08, skills.memory: 0.05, skills.counting: 0.05,
    skills.arithmetic: 0.07, skills.listing: 0.03, skills.code: 0.05, skills.free_text: 0.07,
    skills.small_talk: 0.03, skills.unknown: 0.09, skills.nonsense: 0.02, skills.echo: 0.06, skills.rewrite: 0.06,
}  # fmt: skip
SYSTEM = (
    "You are the built-in guide of Slipstream.", "You are a helpful assistant.", "Be brief.",
    "You are a friendly assistant.", "Answer in English.", "You are Slipstream.",
)  # fmt: skip
ROLE, END = "<|im_start|>assistant\n", "<|im_end|>"
BUCKETS = (64, 96, 128, 192, 256, 512, 1024)

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
def _forbidden() -> tuple[frozenset[str], tuple[str, ...]]:
    """Held-out prompts, normal: those refused as a whole, and those refused within others too."""
    held = {normal(prompt) for prompt in heldout.prompts()}
    long = tuple(words for words in held if len(words) > 14)
    return frozenset(held), long


def is_heldout(prompt: str) -> bool:
    """Whether `prompt` is a held-out prompt or contains one, case and punctuation aside."""
    words = normal(prompt)
    whole, parts = _forbidden()
    return words in whole or any(part in words for part in parts)


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


def encode(tokenizer: Tokenizer, chat: Chat) -> tuple[np.ndarray, np.ndarray]:
    """Token ids [n] int32 of a rendered chat, and a mask [n] bool of what the assistant wrote.

    The tokens with which the template opens an answer, that of thinking or of none among them, are
    not the assistant's: it never writes them.
    """
    text = render_chat(chat)
    encoded = tokenizer.encode(text)
    inside = np.zeros(len(encoded.ids), dtype=bool)
    begins = np.array([begin for begin, _ in encoded.offsets])
    for first, last in _written(text, chat):
        inside |= (begins >= first) & (begins < last)
    return np.array(encoded.ids, dtype=np.int32), inside


def _written(text: str, chat: Chat) -> Iterator[tuple[int, int]]:
    """Where in the rendered text the assistant writes, closing markers included."""
    at = 0
    while (opened := text.find(ROLE, at)) >= 0:
        first = opened + len(ROLE)
        at = text.index(END, first) + len(END)
        if at + 1 >= len(text):  # the last answer
            first = len(render_prompt(chat.messages[:-1], chat.thinking))
        yield first, at


def _work(job: tuple[str, int, str]) -> list[tuple[np.ndarray, np.ndarray]]:
    seed, count, tokenizer_text = job
    rng, tokenizer = random.Random(seed), Tokenizer.from_str(tokenizer_text)
    return [encode(tokenizer, draw_chat(rng)) for _ in range(count)]


def build(tokenizer: Tokenizer, seed: int, count: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """`count` chats by length: length -> (ids [n, length] int32, loss mask [n, length] bool).

    Rows are padded on the right with <|endoftext|>; a chat longer than the last bucket is cut.
    """
    step = 1000
    jobs = [
        (f"{seed}/{at}", min(step, count - at), tokenizer.to_str()) for at in range(0, count, step)
    ]
    with multiprocessing.Pool() as pool:
        chats = [chat for part in pool.map(_work, jobs, chunksize=1) for chat in part]
    pad = tokenizer.token_to_id("<|endoftext|>")
    rows: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {length: [] for length in BUCKETS}
    for ids, mask in chats:
        length = next((b for b in BUCKETS if len(ids) <= b), BUCKETS[-1])
        padded, inside = np.full(length, pad, dtype=np.int32), np.zeros(length, dtype=bool)
        padded[: len(ids)], inside[: len(ids)] = ids[:length], mask[:length]
        rows[length].append((padded, inside))
    return {
        length: (np.stack([r[0] for r in found]), np.stack([r[1] for r in found]))
        for length, found in rows.items()
        if found
    }
