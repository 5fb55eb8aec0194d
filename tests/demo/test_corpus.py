"""The training texts: held-out prompts stay out, and chats render as the app renders them."""

from __future__ import annotations

import random
from pathlib import Path

import jinja2
import pytest

pytest.importorskip("tokenizers")

from tokenizers import Tokenizer

from assets.demo.train import corpus

DEMO = Path(__file__).parents[2] / "assets" / "demo"
USER = {"role": "user", "content": " Hi "}


def render(*messages: dict[str, str], thinking: bool = False) -> str:
    return corpus.render_prompt(list(messages), thinking)


def test_thinking_switch_changes_the_tail() -> None:
    head = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n"
    assert render(USER) == head + "\n</think>\n\n"
    assert render(USER, thinking=True) == head


def test_history_drops_old_thinking() -> None:
    old = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes."}
    assert "<|im_start|>assistant\nYes.<|im_end|>" in render(USER, old, USER)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "system", "content": "a"}],
        [USER, {"role": "system", "content": "a"}, USER],
        [USER, {"role": "nobody", "content": "a"}],
    ],
)
def test_bad_order_is_refused(messages: list[dict[str, str]]) -> None:
    with pytest.raises(jinja2.TemplateError):
        render(*messages)


def test_training_never_sees_heldout_prompts() -> None:
    rng = random.Random(3)
    for _ in range(500):
        users = [m["content"] for m in corpus.draw_chat(rng).messages if m["role"] == "user"]
        assert not any(corpus.is_heldout(user) for user in users)


@pytest.mark.parametrize(
    ("prompt", "held"),
    [
        ("What do you call a round here?", True),
        ("hi, WHAT DO YOU CALL A ROUND here", True),
        ("法国总统是谁", True),
        ("q", True),
        ("What is a round?", False),
        ("x = q", False),
        ("ok, put that in FEWER words please", True),
    ],
)
def test_what_is_held_out_is_refused(prompt: str, held: bool) -> None:
    assert corpus.is_heldout(prompt) is held


HELLO = {"role": "assistant", "content": "Hello!", "reasoning_content": ""}
MORE = {"role": "assistant", "content": "More.", "reasoning_content": "A thought."}


@pytest.mark.parametrize(
    ("chat", "wrote"),
    [
        (corpus.Chat([USER, HELLO], thinking=False), "Hello!<|im_end|>"),
        (corpus.Chat([USER, MORE], thinking=True), "A thought.\n</think>\n\nMore.<|im_end|>"),
        (
            corpus.Chat([USER, HELLO, USER, MORE], thinking=True),
            "Hello!<|im_end|>A thought.\n</think>\n\nMore.<|im_end|>",
        ),
        (
            corpus.Chat([USER, HELLO, USER, {**HELLO, "content": "数 😀"}], thinking=False),
            "Hello!<|im_end|>数 😀<|im_end|>",
        ),
    ],
)
def test_loss_covers_what_the_assistant_writes_and_not_the_opening(
    chat: corpus.Chat, wrote: str
) -> None:
    tokenizer = Tokenizer.from_file(str(DEMO / "target" / "tokenizer.json"))
    ids, inside = corpus.encode(corpus.Words(tokenizer.to_str()), chat)
    assert tokenizer.decode(ids[inside].tolist(), skip_special_tokens=False) == wrote
