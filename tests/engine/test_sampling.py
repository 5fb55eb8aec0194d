"""Drawn tokens follow the target's distribution, on the host and in the graph."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from app.binding.inspection import choose
from app.engine import AskParams, Sampling, Verify
from app.engine.pair import LoadedPair
from tests.engine.conftest import ask, chat

DRAWS = 200_000
LOGITS = np.array([1.2, -0.3, 0.9, 2.1, -4.0, 0.5, 1.7, -1.1], dtype=np.float32)
# 99.99th percentile of chi-square with 1 to 7 degrees of freedom.
CRITICAL = (15.14, 18.42, 21.11, 23.51, 25.74, 27.86, 29.88)
DEVICE = pytest.mark.parametrize("verify", [Verify.HOST_SAMPLE, Verify.GPU_SAMPLE])


def expected(sampling: Sampling, of: NDArray[np.float32] = LOGITS) -> NDArray[np.float64]:
    """The distribution that `Sampling` promises, by its definition."""
    logits = of.astype(np.float64)
    probability = np.exp(logits - logits.max())
    order = np.argsort(-logits, kind="stable")
    if 0 < sampling.top_k < len(order):
        behind = logits[
            order[sampling.top_k]
        ]  # of equals at the edge none, but for the first of all
        order = order[logits[order] > behind] if logits[order[0]] > behind else order[:1]
    share = probability[order] / probability[order].sum()
    before = np.cumsum(share) - share
    order = order[before < sampling.top_p]
    order = order[probability[order] >= sampling.min_p * probability.max()]
    result = np.zeros(len(logits))
    result[order] = np.exp((logits[order] - logits.max()) / sampling.temperature)
    return result / result.sum()


@DEVICE
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=t, top_k=k, top_p=p, min_p=m)
        for t, k, p, m in (
            (0.3, 0, 1.0, 0.0),
            (1.0, 0, 1.0, 0.0),
            (1.5, 0, 1.0, 0.0),
            (1.0, 3, 1.0, 0.0),
            (1.0, 0, 0.8, 0.0),
            (1.0, 0, 1.0, 0.2),
            (1.5, 6, 0.9, 0.1),
            (0.7, 20, 0.95, 0.0),
        )
    ],
    ids=str,
)
def test_frequencies_are_those_of_the_distribution(verify: Verify, sampling: Sampling) -> None:
    rows = np.tile(LOGITS, (DRAWS, 1))
    tokens = choose(rows, verify, sampling, seed=32, position=7)
    counts = np.bincount(tokens, minlength=len(LOGITS))
    wanted = expected(sampling) * DRAWS
    possible = wanted > 0
    assert not counts[~possible].any()
    square = float(((counts - wanted)[possible] ** 2 / wanted[possible]).sum())
    assert square < CRITICAL[int(possible.sum()) - 2], counts


@DEVICE
@pytest.mark.parametrize("top_k", range(1, 8))
def test_which_of_equals_stay_does_not_depend_on_their_places(verify: Verify, top_k: int) -> None:
    """Two pairs of equals and a best alone: an edge between equals takes both away."""
    logits = np.array([0.5, 2.0, 1.0, 0.5, -1.0, 1.0, 0.0], dtype=np.float32)
    rng = np.random.default_rng(top_k)
    places = rng.permuted(np.tile(np.arange(len(logits)), (2000, 1)), axis=1)
    sampling = Sampling(temperature=3.0, top_k=top_k, top_p=1.0)
    tokens = choose(logits[places], verify, sampling, seed=3)
    drawn = places[np.arange(len(places)), tokens]
    assert set(drawn) == set(np.flatnonzero(expected(sampling, logits)))


@DEVICE
@pytest.mark.parametrize("top_k", [1, 2, 5])
def test_all_equals_give_the_first(verify: Verify, top_k: int) -> None:
    rows = np.zeros((100, 6), dtype=np.float32)
    rows[50:, :2] = -1
    sampling = Sampling(temperature=1.0, top_k=top_k, top_p=0.9, min_p=0.1)
    tokens = choose(rows, verify, sampling, seed=4)
    if top_k < 4:
        assert (tokens == [0] * 50 + [2] * 50).all()
    else:
        assert (tokens[:50] == 0).all()


@DEVICE
def test_draws_of_neighbouring_positions_are_independent(verify: Verify) -> None:
    rows = np.tile(np.zeros(4, dtype=np.float32), (DRAWS, 1))
    sampling = Sampling(temperature=1.0, top_k=0, top_p=1.0)
    tokens = choose(rows, verify, sampling, seed=1)
    pairs = np.bincount(tokens[:-1] * 4 + tokens[1:], minlength=16)
    square = float(((pairs - DRAWS / 16) ** 2 / (DRAWS / 16)).sum())
    assert square < 45  # 99.99th percentile with 15 degrees of freedom is 44.3


@DEVICE
@pytest.mark.parametrize("temperature", [0.0, 1e-6, 1e-30])
def test_no_temperature_is_greedy(verify: Verify, temperature: float) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(0, 30, (500, 333)).astype(np.float32)
    sampling = Sampling(temperature=temperature, top_k=0, top_p=1.0)
    assert np.array_equal(choose(rows, verify, sampling, seed=5), rows.argmax(axis=1))


@pytest.mark.parametrize("n_vocab", [1, 15, 255, 256, 257, 511, 5000])
def test_greedy_takes_the_first_of_equals(n_vocab: int) -> None:
    rows = np.random.default_rng(n_vocab).integers(-9, 3, (200, n_vocab)).astype(np.float32)
    rows[::3][rows[::3] < 0] = -np.inf
    rows[:, 0] = np.maximum(rows[:, 0], -9)
    assert np.array_equal(choose(rows, Verify.GREEDY, Sampling(), seed=0), rows.argmax(axis=1))


@DEVICE
def test_extreme_logits_give_a_token(verify: Verify) -> None:
    rows = np.full((64, 50), -1e30, dtype=np.float32)
    rows[:, 17] = 1e30
    for sampling in (Sampling(), Sampling(top_k=0, top_p=1.0, min_p=0.5)):
        assert (choose(rows, verify, sampling, seed=2) == 17).all()


@DEVICE
def test_a_draw_depends_on_seed_and_position_alone(verify: Verify) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(0, 1, (64, 1000)).astype(np.float32)
    sampling = Sampling(temperature=1.0, top_k=40, top_p=0.95)
    together = choose(rows, verify, sampling, seed=9, position=100)
    alone = [
        choose(rows[i : i + 1], verify, sampling, seed=9, position=100 + i)[0] for i in range(64)
    ]
    assert np.array_equal(together, alone)
    assert not np.array_equal(together, choose(rows, verify, sampling, seed=10, position=100))


@DEVICE
@pytest.mark.parametrize("seed", range(4))
def test_the_same_seed_gives_the_same_text_with_and_without_the_drafter(
    demo: LoadedPair, verify: Verify, seed: int
) -> None:
    sampling = Sampling(temperature=1.0, top_k=50, top_p=0.98, seed=seed)
    question = chat("Tell me a short story about a cat.")
    texts = {
        ask(
            demo,
            question,
            AskParams(
                max_tokens=120, verify=verify, sampling=sampling, block=block, draft=block != 1
            ),
        ).answer.token_ids
        for block in (1, 4, 16, None)
    }
    assert len(texts) == 1


def test_sampling_on_the_device_brings_only_tokens_to_the_host(demo: LoadedPair) -> None:
    params = AskParams(max_tokens=64, verify=Verify.GPU_SAMPLE, sampling=Sampling(seed=1))
    answer = ask(demo, chat("What is DFlash?"), params).answer
    assert answer.totals.rounds
    assert answer.totals.bytes_to_host <= 4 * (15 + 16) * answer.totals.rounds
