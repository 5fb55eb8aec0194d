"""The demo on phrasings it never saw: right answers, mean accepted length, losslessness.

The whole block is verified each time: how much of it pays hangs on what else the machine does.
"""

from __future__ import annotations

from typing import Any

import pytest

from app.engine import Answer, AskParams
from app.engine.pair import LoadedPair
from app.ui.chat.welcome import SUGGESTIONS
from assets.demo.train import freetext, skills
from assets.demo.train.phrasing import topics

from .conftest import ask, chat

WHOLE = 16
GUIDE = AskParams(max_tokens=200, block=WHOLE)


VARIANTS = {
    "What is DFlash?": (
        *("what is dflash", "WHAT IS DFLASH?", "whats DFlash", "Hi! What is DFlash please?"),
        "waht is DFlash?",
    ),
    "List the planets": (
        *("list the planets please", "Can you list the planets?", "LIST THE PLANETS"),
        *("lsit the planets", "hello, list the planets."),
    ),
    "Tell me a short story": (
        *("tell me a short story", "Could you tell me a short story?", "TELL ME A SHORT STORY!"),
        *("tell me a shrot story", "a short story please"),
    ),
}
"""What the window suggests, as others would type it."""


def both_ways(loaded: LoadedPair, prompt: str, n: int) -> tuple[Answer, Answer]:
    """Drafted and plain, each from a cold state."""
    answers = []
    for draft in (True, False):
        loaded.native.reset()
        answers.append(
            ask(loaded, chat(prompt), AskParams(max_tokens=n, draft=draft, block=WHOLE)).answer
        )
    return answers[0], answers[1]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_the_first_question(cold: LoadedPair) -> None:
    answer = ask(cold, chat("What is DFlash?"), GUIDE).answer
    assert answer.totals.mean_accepted_length is not None
    assert answer.totals.mean_accepted_length >= 6


@pytest.mark.parametrize("suggestion", SUGGESTIONS)
@pytest.mark.parametrize("think", [False, True])
def test_suggestions_and_five_variants_of_each(
    cold: LoadedPair, suggestion: str, think: bool
) -> None:
    for prompt in (suggestion, *VARIANTS[suggestion]):
        text = ask(cold, chat(prompt), AskParams(max_tokens=200, think=think)).answer.text.strip()
        if "story" in suggestion:
            assert text.startswith(freetext.SLOTS["start"]), (prompt, text)
            assert "lived in a" in text, (prompt, text)
        elif "planets" in suggestion:
            assert [line.split(". ")[1] for line in text.splitlines()] == [
                *skills.LISTS["the planets"]
            ], (prompt, text)
        else:
            assert text == next(t.answer for t in topics() if t.name == "dflash"), prompt


def test_guide_questions(cold: LoadedPair, heldout: dict[str, Any]) -> None:
    right, lengths = 0, []
    entries = heldout["guide"][:: max(1, len(heldout["guide"]) // 30)][:30]
    assert len(entries) == 30
    for entry in entries:
        drafted, plain = both_ways(cold, entry["prompt"], 200)
        assert drafted.token_ids == plain.token_ids, entry["prompt"]
        right += drafted.text.strip() in entry["answers"]
        assert drafted.totals.mean_accepted_length is not None
        lengths.append(drafted.totals.mean_accepted_length)
    assert right >= 27
    assert mean(lengths) >= 6


def test_free_text(cold: LoadedPair, heldout: dict[str, Any]) -> None:
    lengths = []
    for prompt in heldout["free_text"]:
        drafted, plain = both_ways(cold, prompt, 200)
        assert drafted.token_ids == plain.token_ids, prompt
        assert drafted.totals.mean_accepted_length is not None
        lengths.append(drafted.totals.mean_accepted_length)
    assert mean(lengths) >= 2


@pytest.mark.parametrize(("block", "least"), [(2, 1.85), (4, 3.25), (6, 4.27)])
def test_a_short_block_is_drafted_like_the_beginning_of_a_long_one(
    cold: LoadedPair, heldout: dict[str, Any], block: int, least: float
) -> None:
    """Of a block of 16, 1.94, 3.41 and 4.36 of the first 2, 4 and 6 are accepted; with no mask
    behind what is verified it is 1.78, 3.07 and 4.14."""
    lengths = []
    for prompt in heldout["free_text"]:
        cold.native.reset()
        params = AskParams(max_tokens=150, block=block, lookup=False)
        length = ask(cold, chat(prompt), params).answer.totals.mean_accepted_length
        assert length is not None
        lengths.append(length)
    assert mean(lengths) >= least


@pytest.mark.parametrize("think", [False, True])
def test_dialogues(cold: LoadedPair, heldout: dict[str, Any], think: bool) -> None:
    """Every turn on top of what the demo itself answered before, as the report counts them."""
    right = turns = 0
    for dialogue in heldout["dialogues"]:
        said: list[str] = []
        for prompt, answers in zip(dialogue["prompts"], dialogue["answers"], strict=True):
            said.append(prompt)
            params = AskParams(max_tokens=200, think=think)
            said.append(ask(cold, chat(*said), params).answer.text.strip())
            right += said[-1] in answers
            turns += 1
    assert right >= 0.9 * turns
