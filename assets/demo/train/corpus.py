"""Chats for training, rendered and tokenized exactly as the app renders them.

A chat is one skill, or several in a row; about a third of them think before the last answer.
Loss is taken on what the assistant writes, its closing marker included.
"""

from __future__ import annotations

import json
import multiprocessing
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2.sandbox
import numpy as np
from tokenizers import Tokenizer

from . import skills
from .phrasing import normal, topics
from .skills import Skill, Turn

HERE = Path(__file__).parent
TEMPLATE = HERE.parent / "target" / "chat_template.jinja"
MIX: dict[Skill, float] = {
    skills.guide: 0.38, skills.follow_up: 0.08, skills.memory: 0.09, skills.counting: 0.06,
    skills.arithmetic: 0.07, skills.listing: 0.03, skills.code: 0.05, skills.free_text: 0.09,
    skills.small_talk: 0.03, skills.unknown: 0.05, skills.echo: 0.07,
}  # fmt: skip
SYSTEM = (
    "You are the built-in guide of Slipstream.", "You are a helpful assistant.", "Be brief.",
    "You are a friendly assistant.", "Answer in English.", "You are Slipstream.",
)  # fmt: skip
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
def heldout() -> dict[str, list[Any]]:
    """Guide and free-text prompts that training never sees, and dialogues to measure."""
    data: dict[str, list[Any]] = json.loads((HERE / "heldout.json").read_text(encoding="utf-8"))
    answers = {topic.name: [topic.answer] for topic in topics()}
    wrong = [e["topic"] for e in data["guide"] if answers.get(e["topic"]) != e["answers"]]
    if wrong:
        raise ValueError(f"heldout.json and guide.toml differ on {wrong}")
    return data


@cache
def _forbidden() -> tuple[str, ...]:
    prompts = [e["prompt"] for e in heldout()["guide"]] + heldout()["free_text"]
    return tuple(normal(prompt) for prompt in prompts)


def is_heldout(prompt: str) -> bool:
    """Whether `prompt` contains a held-out prompt, case and punctuation aside."""
    words = f" {normal(prompt)} "
    return any(f" {words_held} " in words for words_held in _forbidden())


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


def encode(tokenizer: Tokenizer, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Token ids [n] int32 of a rendered chat, and a mask [n] bool of what the assistant wrote."""
    ids = np.array(tokenizer.encode(text).ids, dtype=np.int32)
    start, end, role = (
        tokenizer.token_to_id(t) for t in ("<|im_start|>", "<|im_end|>", "assistant")
    )
    opens = np.zeros(len(ids) + 1, dtype=np.int8)
    opens[2:] = (ids[:-1] == start) & (ids[1:] == role)
    closes = np.concatenate(([0], ids == end)).astype(np.int8)
    inside = np.zeros(len(ids), dtype=bool)
    closings = np.flatnonzero(closes) - 1
    for first in np.flatnonzero(opens):
        last = closings[closings >= first]
        inside[first : (last[0] if len(last) else len(ids)) + 1] = True
    return ids, inside


def _work(job: tuple[str, int, str]) -> list[tuple[np.ndarray, np.ndarray]]:
    seed, count, tokenizer_text = job
    rng, tokenizer = random.Random(seed), Tokenizer.from_str(tokenizer_text)
    return [encode(tokenizer, render_chat(draw_chat(rng))) for _ in range(count)]


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
