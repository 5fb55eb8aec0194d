"""The state after a partial rejection is the one a cold run has.

A scripted drafter decides how much is accepted. Logits are compared, never acceptance:
a corrupted state loops, and loops draft well.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from app.binding.inspection import eval_target
from app.engine.pair import LoadedPair

from .conftest import WHOLE, chat

WIDTH = 15
# rounds, and tokens of prompt and answer that the script walks through
ROUNDS, LENGTH = (500, 1900) if WHOLE else (64, 160)

# Plain steps and verify passes add up in another order, and the KV cache is F16.
ROUNDING = 5e-3


def plain_tokens(loaded: LoadedPair, prompt: Sequence[int], n: int) -> list[int]:
    """Prompt and plain greedy answer, `n` tokens in all, whatever ends in between."""
    pair = loaded.native
    pair.reset()
    out = [*prompt, pair.prompt(prompt, drafting=False)[0]]
    while len(out) < n:
        out += pair.round(0).emitted
    return out


def other_than(token: int, rng: random.Random) -> int:
    return (token + rng.randrange(1, 200)) % 4000


def spoilt(right: Sequence[int], accept: int, rng: random.Random) -> list[int]:
    """A draft of which exactly `accept` tokens are right."""
    return [*right[:accept], *(other_than(t, rng) for t in right[accept:])]


def test_logits_of_every_round_equal_a_cold_run(cold: LoadedPair) -> None:
    pair, rng = cold.native, random.Random(29)
    prompt = cold.prompt(chat("Tell me a short story about a cat."), think=False).tokens
    truth = plain_tokens(cold, prompt, LENGTH)
    reference = eval_target(pair, truth, 1)
    scale = float(np.abs(reference).max())

    at = 0  # index of the anchor in `truth`
    seen = set()
    counts: list[int] = []  # of full drafts: each is accepted up to 0 ... 15 in random order
    for n in range(ROUNDS):
        if n == 0 or at + WIDTH + 2 >= LENGTH:
            pair.reset()
            assert pair.prompt(prompt)[0] == truth[len(prompt)]
            at = len(prompt)
        length = rng.choice((0, 1, 1, WIDTH, WIDTH, WIDTH, WIDTH, WIDTH, 7))
        if length == WIDTH:
            counts = counts or rng.sample(range(WIDTH + 1), WIDTH + 1)
            accept = counts.pop()
        else:
            accept = rng.randrange(length + 1)
        draft = spoilt(truth[at + 1 : at + 1 + length], accept, rng)
        emitted = pair.round_given(draft).emitted
        assert list(emitted) == truth[at + 1 : at + 2 + accept]
        for row in range(accept + 1):
            worst = np.abs(pair.last_logits(row) - reference[at + row]).max()
            assert worst <= ROUNDING * scale, (n, length, accept, row)
        seen.add((length, accept))
        at += accept + 1
    assert {accept for length, accept in seen if length == WIDTH} == set(range(WIDTH + 1))


@pytest.mark.parametrize("accept", range(WIDTH + 1))
def test_what_was_rejected_leaves_no_trace(cold: LoadedPair, accept: int) -> None:
    """Same accepted tokens, other rejected ones: the next logits are the same, bit for bit."""
    pair = cold.native
    prompt = cold.prompt(chat("What is DFlash?"), think=False).tokens
    truth = plain_tokens(cold, prompt, len(prompt) + 64)
    logits = []
    for seed in (1, 2):
        pair.reset()
        pair.prompt(prompt)
        at, rng = len(prompt), random.Random(seed)
        for take in (accept, 0, accept):
            assert (
                len(pair.round_given(spoilt(truth[at + 1 : at + 1 + WIDTH], take, rng)).emitted)
                == take + 1
            )
            at += take + 1
        pair.round_given(truth[at + 1 : at + 1 + WIDTH])
        logits.append(np.stack([pair.last_logits(row) for row in range(WIDTH + 1)]))
    assert np.array_equal(logits[0], logits[1])


def test_what_is_drafted_is_what_a_fresh_state_drafts(cold: LoadedPair) -> None:
    """Whatever blocks came before: wider ones, shorter ones, and given ones that fill the queue."""
    if cold.model.device.kind != "cpu":
        pytest.skip("a prompt's features need not have the bits of a verify's there")
    pair = cold.native
    prompt = cold.prompt(chat("Tell me a short story about a cat."), think=False).tokens
    truth = plain_tokens(cold, prompt, len(prompt) + 120)
    pair.reset()
    at, drafts = len(prompt), []
    assert pair.prompt(prompt)[0] == truth[at]
    for length in (WIDTH, 1, 7, 3, 0, 2, -WIDTH, 1, WIDTH, 11, -7, 5, 1, 1, 4, 9):
        if length < 0:
            emitted = pair.round_given(truth[at + 1 : at + 1 - length]).emitted
        else:
            result = pair.round(length)
            emitted = result.emitted
            drafts.append((at, length, result.drafted))
        at += len(emitted)
        assert truth[at] == emitted[-1]
    for at, length, drafted in drafts:
        pair.reset()
        assert pair.prompt(truth[:at])[0] == truth[at]
        assert pair.round(length).drafted == drafted, (at, length)


def test_a_graph_is_reused_round_after_round(cold: LoadedPair) -> None:
    """Nothing but data depends on what was accepted: the target's graph is built once."""
    pair, rng = cold.native, random.Random(3)
    prompt = cold.prompt(chat("What is DFlash?"), think=False).tokens
    truth = plain_tokens(cold, prompt, len(prompt) + 200)
    pair.reset()
    pair.prompt(prompt, drafting=False)
    at, rebuilt = len(prompt), []
    for take in (3, 0, 15, 7, 1, 14, 2, 9):
        rebuilt.append(
            pair.round_given(spoilt(truth[at + 1 : at + 1 + WIDTH], take, rng)).graphs_rebuilt
        )
        at += take + 1
    # the KV cache grows in steps of 256, which the graph does see
    assert sum(rebuilt[1:]) <= 1


def test_a_width_that_comes_back_has_its_graph(cold: LoadedPair) -> None:
    """Each is built once, whatever came between."""
    pair = cold.native
    prompt = cold.prompt(chat("What is DFlash?"), think=False).tokens
    truth = plain_tokens(cold, prompt, len(prompt) + 90)
    pair.reset()
    pair.prompt(prompt, drafting=False)
    at, rebuilt = len(prompt), []
    for length in (WIDTH, 0, 7, 3) * 3:
        result = pair.round_given(truth[at + 1 : at + 1 + length])
        rebuilt.append(result.graphs_rebuilt)
        at += len(result.emitted)
    assert at < 256  # where the KV cache grows
    # a card captures the second of each
    assert sum(rebuilt[8:] if cold.model.device.kind != "cpu" else rebuilt[4:]) == 0
