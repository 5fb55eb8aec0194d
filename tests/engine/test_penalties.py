"""Penalties and biases: row i of a verify sees what the rows before it would emit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.binding import NativePair
from app.binding.inspection import choose
from app.engine import AskParams, Sampling, Verify
from app.engine.control import penalised
from app.engine.pair import LoadedPair
from app.errors import OptionError
from app.library import Pair
from tests.engine.conftest import ask, chat
from tests.engine.test_sampling import CRITICAL, DEVICE, DRAWS, LOGITS, expected

WAYS = pytest.mark.parametrize("verify", list(Verify))
ALL = Sampling(
    temperature=1.0,
    top_k=0,
    top_p=1.0,
    presence_penalty=1.5,
    frequency_penalty=0.4,
    repeat_penalty=1.3,
    penalty_last_n=64,
    logit_bias=((2, 0.7), (4, 3.0), (2, 0.1)),
)
KINDS = [
    replace(ALL, frequency_penalty=0.0, repeat_penalty=1.0, logit_bias=()),  # presence alone
    replace(ALL, presence_penalty=0.0, repeat_penalty=1.0, logit_bias=()),  # frequency alone
    replace(ALL, presence_penalty=0.0, frequency_penalty=0.0, logit_bias=()),  # repetition alone
    replace(ALL, penalty_last_n=0),  # biases alone
    replace(ALL, presence_penalty=-1.0, frequency_penalty=-0.2, repeat_penalty=0.8),
    *(replace(ALL, penalty_last_n=n) for n in (1, 3, 64, -1)),
]


def by_definition(
    logits: NDArray[np.float32], before: Sequence[int], s: Sampling
) -> NDArray[np.float32]:
    """llama.cpp's two samplers, a token at a time, in double precision."""
    result = logits.astype(np.float64)
    for token, bias in s.logit_bias:
        result[token] += bias
    window = list(before) if s.penalty_last_n < 0 else list(before)[::-1][: s.penalty_last_n]
    for token in range(len(logits)):
        count = window.count(token)
        if count == 0:
            continue
        scale = s.repeat_penalty
        result[token] = result[token] * scale if result[token] <= 0 else result[token] / scale
        result[token] -= count * s.frequency_penalty + s.presence_penalty
    return result.astype(np.float32)


@pytest.mark.parametrize("drafting", [True, False])
@pytest.mark.parametrize("before", [None, Verify.GREEDY, Verify.GPU_SAMPLE])
def test_a_prompt_of_many_parts_behind_another_answer(
    demo_files: Pair, device: str | None, before: Verify | None, drafting: bool
) -> None:
    """Its first parts choose nothing, and their graph is built anew where drafting begins or ends:
    what is to choose behind them has to be there already."""
    files = demo_files.target, demo_files.draft
    pair = NativePair(*files, device=device, n_ctx=256, n_ubatch=17, threads=1)
    tokens = pair.tokenize("What is a round? How long is a block? " * 8)[:60]
    if before is not None:
        pair.prompt(tokens[:20], drafting=not drafting, verify=before, sampling=ALL)
        pair.round(0 if drafting else 3)
    first, _ = pair.prompt(tokens, drafting=drafting, sampling=KINDS[0])
    pair.reset()
    pair.prompt(tokens[:2], drafting=drafting)  # so that nothing is built anew
    assert pair.prompt(tokens, drafting=drafting, sampling=KINDS[0])[0] == first
    pair.close()


@DEVICE
@pytest.mark.parametrize("sampling", [KINDS[0], ALL, replace(ALL, top_k=5, top_p=0.9)], ids=str)
def test_frequencies_are_those_of_the_penalised_distribution(
    verify: Verify, sampling: Sampling
) -> None:
    before = [3, 6, 3, 0, 7, 3]
    rows = np.tile(LOGITS, (DRAWS, 1))
    tokens = choose(rows, verify, sampling, seed=32, position=7, before=before)
    counts = np.bincount(tokens, minlength=len(LOGITS))
    wanted = expected(sampling, by_definition(LOGITS, before, sampling)) * DRAWS
    possible = wanted > 0
    assert not counts[~possible].any()
    square = float(((counts - wanted)[possible] ** 2 / wanted[possible]).sum())
    assert square < CRITICAL[int(possible.sum()) - 2], counts


@WAYS
@pytest.mark.parametrize("sampling", KINDS, ids=str)
@pytest.mark.parametrize("n_vocab", [12, 333])
def test_each_row_is_penalised_for_the_tokens_before_it(
    device: str | None, verify: Verify, sampling: Sampling, n_vocab: int
) -> None:
    """Greedy choices of a whole block, beside the definition row by row."""
    rng = np.random.default_rng(n_vocab)
    sampling = replace(sampling, temperature=0.0)
    for width in (1, 2, 7, 16):
        rows = rng.normal(0, 2, (width, n_vocab)).astype(np.float32)
        before = rng.integers(0, n_vocab, 100).tolist()
        block = rng.choice([*before[-5:], *range(9)], width - 1).tolist()
        found = choose(rows, verify, sampling, seed=1, device=device, before=before, block=block)
        for i, row in enumerate(rows):
            behind = [*before, *block[:i]]
            wanted = by_definition(row, behind, sampling)
            assert found[i] == wanted.argmax()
            assert np.allclose(penalised(row, behind, sampling), wanted, rtol=1e-5, atol=1e-5)


@WAYS
@pytest.mark.parametrize("sampling", KINDS, ids=str)
def test_a_row_of_a_block_is_chosen_as_it_is_alone(verify: Verify, sampling: Sampling) -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(0, 2, (64, 60)).astype(np.float32)
    before = rng.integers(0, 40, 150).tolist()
    block = rng.integers(0, 60, 63).tolist()
    sampling = replace(sampling, top_k=40, top_p=0.95)
    together = choose(rows, verify, sampling, seed=9, position=150, before=before, block=block)
    for i, row in enumerate(rows):
        behind = [*before, *block[:i]]
        alone = choose(row[None], verify, sampling, seed=9, position=150 + i, before=behind)
        assert alone[0] == together[i]
    without = replace(sampling, presence_penalty=0, frequency_penalty=0, repeat_penalty=1)
    without = replace(without, logit_bias=())
    assert not np.array_equal(together, choose(rows, verify, without, seed=9, position=150))


@WAYS
def test_a_bias_forces_and_bans(verify: Verify) -> None:
    rows = np.tile(LOGITS, (50, 1))
    for token, bias in ((4, 100.0), (3, -100.0)):
        sampling = Sampling(temperature=1.0, logit_bias=((token, bias),))
        found = set(choose(rows, verify, sampling, seed=3).tolist())
        assert found == {token} if bias > 0 else token not in found


@WAYS
def test_penalties_leave_what_has_no_chance_without_one(verify: Verify) -> None:
    rows = np.full((3, 50), -np.inf, dtype=np.float32)
    rows[:, 17] = 1e30
    found = choose(rows, verify, ALL, seed=2, before=[17, 3, 4], block=[5, 17])
    assert found.tolist() == [17, 17, 17]


@WAYS
@pytest.mark.parametrize("penalty_last_n", [5, 64, -1])
def test_drafted_text_with_penalties_is_plain_text(
    demo: LoadedPair, verify: Verify, penalty_last_n: int
) -> None:
    """For each block, with and without the drafter, also where no window holds a whole block."""
    none = Sampling(temperature=1.0, top_k=50, top_p=0.98, seed=7)
    some = replace(none, presence_penalty=1.5, frequency_penalty=0.4, repeat_penalty=1.4)

    def text(block: int | None, sampling: Sampling) -> tuple[int, ...]:
        params = AskParams(60, verify, sampling, block, draft=block != 1)
        return ask(demo, chat("Write a short story about a river."), params).answer.token_ids

    some = replace(some, penalty_last_n=penalty_last_n)
    texts = {text(block, some) for block in (1, 2, 5, 16, None)}
    assert len(texts) == 1
    assert penalty_last_n == 5 or text(None, none) not in texts


def test_the_tokens_of_a_prompt_count(demo: LoadedPair) -> None:
    tokens = demo.native.tokenize("yes yes yes no")
    first, _ = demo.native.prompt(tokens)
    ban = Sampling(logit_bias=((first, 30.0),))
    assert demo.native.prompt(tokens, sampling=ban)[0] == first
    behind = [first, *tokens]
    once, _ = demo.native.prompt(behind, sampling=ban)
    assert once == first
    hard = replace(ban, presence_penalty=2.0, frequency_penalty=2.0, repeat_penalty=5.0)
    assert demo.native.prompt(behind, sampling=replace(hard, penalty_last_n=64))[0] != first
    assert demo.native.prompt(behind, sampling=replace(hard, penalty_last_n=4))[0] == first


def test_sampling_with_penalties_brings_only_tokens_to_the_host(demo: LoadedPair) -> None:
    for verify in (Verify.GREEDY, Verify.GPU_SAMPLE):
        totals = ask(demo, chat("What is DFlash?"), AskParams(64, verify, ALL)).answer.totals
        assert totals.rounds
        assert totals.bytes_to_host <= 4 * (15 + 16) * totals.rounds


@pytest.mark.parametrize("bias", [(10**6, 1.0)])
def test_a_bias_beyond_the_vocabulary_is_refused(demo: LoadedPair, bias: tuple[int, float]) -> None:
    with pytest.raises(OptionError, match="bias of token 1000000"):
        demo.native.prompt([1, 2, 3], sampling=Sampling(logit_bias=(bias,)))
    assert math.isfinite(demo.native.prompt([1, 2, 3])[0])


@pytest.mark.parametrize(
    "sampling",
    [
        {"logit_bias": ((3, 9e29), (3, 9e29))},
        {"logit_bias": ((3, 3e38), (3, 3e38))},
        {"repeat_penalty": 1e-5},
        {"presence_penalty": 1e31},
    ],
    ids=str,
)
def test_what_would_make_a_logit_infinite_is_refused(sampling: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        choose(np.zeros((1, 40), np.float32), Verify.HOST_SAMPLE, Sampling(**sampling), seed=1)
