"""Greedy text with the drafter is plain greedy text, or the control run explains it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from app.engine import AskParams, Backend
from app.engine.pair import LoadedPair

from .conftest import BACKEND, WHOLE, ask, chat

GUIDE, FREE, TOKENS = (20, 10, 256) if WHOLE else (3, 0, 48)
WIDTH = 15


def answer(loaded: LoadedPair, prompt: Sequence[int], width: int) -> list[int]:
    """The first `TOKENS` tokens, whatever ends in between."""
    pair = loaded.native
    pair.reset()
    out = [pair.prompt(prompt, drafting=width > 0)[0]]
    while len(out) < TOKENS:
        out += pair.round(width).emitted
    return out[:TOKENS]


@pytest.mark.parametrize("index", range(GUIDE + FREE))
def test_drafting_changes_no_text(cold: LoadedPair, heldout: dict[str, Any], index: int) -> None:
    guide = [entry["prompt"] for entry in heldout["guide"]]
    question = [*guide[:: len(guide) // GUIDE][:GUIDE], *heldout["free_text"][:FREE]][index]
    tokens = cold.prompt(chat(question), think=False).tokens
    plain, drafted = (answer(cold, tokens, width) for width in (0, WIDTH))
    if plain != drafted:
        assert not cold.native.probe_exact().exact, question
        first = next(i for i in range(TOKENS) if plain[i] != drafted[i])
        found = cold.control(chat(question), AskParams(), plain, first)
        assert found.explains, (question, first, found)


def test_the_control_does_not_explain_a_fault(cold: LoadedPair) -> None:
    question = chat("What is DFlash?")
    plain = ask(cold, question, AskParams(max_tokens=40, draft=False)).answer.token_ids
    found = cold.control(question, AskParams(), plain, 17)
    assert not found.explains
    assert found.spread is not None
    assert found.gap > found.spread
    if BACKEND is Backend.CPU:
        assert found.spread == 0  # exact: a pass over many rows gives the bits of one


def test_a_first_token_is_of_the_same_pass_in_either_run(cold: LoadedPair) -> None:
    """It is the prompt's, so that rounding explains nothing; a record of another device asks."""
    question = chat("What is DFlash?")
    plain = ask(cold, question, AskParams(max_tokens=4, draft=False)).answer.token_ids
    found = cold.control(question, AskParams(), plain, 0)
    assert found.gap > 0
    assert (found.spread, found.flips, found.explains) == (0, False, False)


def test_the_control_sees_a_target_that_flips(cold: LoadedPair) -> None:
    """An answer that the target itself does not give stands for one it gives only by chance."""
    question = chat("What is DFlash?")
    plain = list(ask(cold, question, AskParams(max_tokens=40, draft=False)).answer.token_ids)
    plain[9] = plain[9] + 1 if plain[9] + 1 != plain[10] else plain[9] + 2
    found = cold.control(question, AskParams(), plain, 20)
    assert (found.flips, found.spread) == (True, None)  # there is nothing to compare
