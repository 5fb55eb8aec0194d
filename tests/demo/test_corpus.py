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
    held = corpus.heldout()
    assert len(held["guide"]) >= 60
    rng = random.Random(3)
    for _ in range(500):
        users = [m["content"] for m in corpus.draw_chat(rng).messages if m["role"] == "user"]
        assert not any(corpus.is_heldout(user) for user in users)


def test_loss_covers_what_the_assistant_writes() -> None:
    tokenizer = Tokenizer.from_file(str(DEMO / "target" / "tokenizer.json"))
    answer = {"role": "assistant", "content": "Hello!", "reasoning_content": ""}
    text = corpus.render_chat(corpus.Chat([USER, answer], thinking=False))
    ids, inside = corpus.encode(tokenizer, text)
    written = tokenizer.decode(ids[inside].tolist(), skip_special_tokens=False)
    assert written == "\n<think>\n\n</think>\n\nHello!<|im_end|>"
