"""A model whose numbers are none: it says so, and the next one answers."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from app.binding import NativePair, NativeRound
from app.binding.inspection import choose, measure_costs
from app.engine import AskParams, Backend, LoadParams, Sampling, Verify
from app.engine.pair import LoadedPair
from app.errors import NonFiniteError, OptionError
from app.library import Pair

from .conftest import ask, chat

QUESTION = chat("What is DFlash?")


def damaged(
    files: Pair,
    folder: Path,
    value: float | np.ndarray,
    name: str = "output_norm.weight",
    at: int = 3,
) -> Path:
    """The target with one weight, or one row of them, replaced."""
    copy = folder / "damaged.gguf"
    shutil.copy(files.target, copy)
    reader = gguf.GGUFReader(copy, "r+")
    (tensor,) = (t for t in reader.tensors if t.name == name)
    assert tensor.data.dtype == np.float32
    tensor.data[at] = value
    reader.data.flush()
    return copy


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_token_is_chosen_among_numbers_that_are_none(
    demo_files: Pair, tmp_path: Path, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = damaged(demo_files, tmp_path, value)
    params = LoadParams(target, demo_files.draft, Backend.CPU, n_ctx=512, threads=1)
    with pytest.raises(NonFiniteError, match="not finite"):
        LoadedPair(params)
    monkeypatch.setattr(LoadedPair, "_check_numbers", lambda self: None)
    loaded = LoadedPair(params)
    try:
        for draft in (True, False):
            asked = AskParams(max_tokens=40, draft=draft)
            with pytest.raises(NonFiniteError, match="not finite"):
                ask(loaded, QUESTION, asked)
            assert loaded.native.position == 0, "what it holds is of no use"
    finally:
        loaded.close()


def test_it_is_seen_where_it_begins_in_the_middle(
    cold: LoadedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = AskParams(max_tokens=60, block=4)
    whole = ask(cold, QUESTION, params).answer
    rounds, round_ = 0, NativePair.round

    def broken(self: NativePair, n_draft: int, **options: Any) -> NativeRound:
        nonlocal rounds
        rounds += 1
        made = round_(self, n_draft, **options)
        return made if rounds < 3 else replace(made, emitted=(*made.emitted[:-1], -1))

    monkeypatch.setattr(NativePair, "round", broken)
    with pytest.raises(NonFiniteError):
        ask(cold, QUESTION, params)
    assert rounds == 3
    assert cold.native.position == 0, "what it holds is of no use"
    monkeypatch.undo()
    assert ask(cold, QUESTION, params).answer.token_ids == whole.token_ids


@pytest.mark.parametrize(("call", "number"), [("prompt", 1), ("prompt", 2), ("round", 2)])
def test_a_control_run_ends_with_it_and_neither_with_a_flip_nor_with_an_option(
    cold: LoadedPair, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    plain = ask(cold, QUESTION, AskParams(max_tokens=12, draft=False)).answer.token_ids
    calls, original = 0, getattr(NativePair, call)

    def broken(self: NativePair, *args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        made = original(self, *args, **options)
        if calls < number:
            return made
        return (-1, made[1]) if call == "prompt" else replace(made, emitted=(-1,))

    monkeypatch.setattr(NativePair, call, broken)
    with pytest.raises(NonFiniteError, match="not finite"):
        cold.control(QUESTION, AskParams(), plain, 8)
    assert calls == number
    assert cold.native.position == 0, "what it holds is of no use"


def test_a_control_run_over_many_rows_ends_with_it_too(
    cold: LoadedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = ask(cold, QUESTION, AskParams(max_tokens=12, draft=False)).answer.token_ids
    given = NativePair.round_given

    def broken(self: NativePair, draft: Any) -> NativeRound:
        made = given(self, draft)
        return replace(made, emitted=(*made.emitted[:-1], -1))

    monkeypatch.setattr(NativePair, "round_given", broken)
    with pytest.raises(NonFiniteError, match="not finite"):
        cold.control(QUESTION, AskParams(), plain, 8)
    assert cold.native.position == 0, "what it holds is of no use"


SAMPLERS = [
    Sampling(seed=1),
    Sampling(top_k=0, top_p=0.9, seed=1),
    Sampling(top_k=0, top_p=1.0, min_p=0.1, seed=1),
]


@pytest.mark.parametrize("verify", list(Verify))
@pytest.mark.parametrize("sampling", SAMPLERS)
def test_a_token_that_makes_no_numbers_ends_an_answer_and_not_the_process(
    demo_files: Pair,
    tmp_path: Path,
    verify: Verify,
    sampling: Sampling,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The embedding is the head too: the load's own look would see one logit that is none.
    monkeypatch.setattr(LoadedPair, "_check_numbers", lambda self: None)
    files = LoadParams(demo_files.target, demo_files.draft, Backend.CPU, n_ctx=512, threads=1)
    whole = LoadedPair(files)
    token = whole.native.tokenize("DFlash")[0]
    whole.close()
    target = damaged(demo_files, tmp_path, float("nan"), "token_embd.weight", token)
    loaded = LoadedPair(replace(files, target=target))
    try:
        asked = AskParams(max_tokens=20, verify=verify, sampling=sampling)
        for _ in range(2):  # the pair is of use after it
            with pytest.raises(NonFiniteError, match="not finite"):
                ask(loaded, QUESTION, asked)
            assert loaded.native.position == 0
    finally:
        loaded.close()


@pytest.mark.parametrize("verify", list(Verify))
@pytest.mark.parametrize("sampling", SAMPLERS)
@pytest.mark.parametrize("share", [0.001, 0.5, 1.0])
def test_any_share_of_a_rows_logits_may_be_none(
    device: str | None, verify: Verify, sampling: Sampling, share: float
) -> None:
    rng = np.random.default_rng(7)
    rows = rng.normal(0, 5, (20, 3000)).astype(np.float32)
    block = {"before": [1, 2], "block": range(19)}  # as in a round
    whole = choose(rows, verify, sampling, seed=1, device=device)
    rows[5, rng.random(3000) < 0.5] = -np.inf  # of which there is none
    for value in (np.nan, np.inf):
        broken = rows.copy()
        broken[::2][rng.random((10, 3000)) < share] = value
        none = (np.isnan(broken) | (broken == np.inf)).any(axis=1)
        assert none.any(), "some rows only"
        tokens = choose(broken, verify, sampling, seed=1, device=device)
        assert (tokens == choose(broken, verify, sampling, seed=1, device=device, **block)).all()
        assert (tokens[none] == -1).all()
        other = ~none & (np.arange(20) != 5)
        assert (tokens[other] == whole[other]).all()
        assert tokens[5] >= 0


@pytest.mark.parametrize("verify", list(Verify))
def test_one_logit_that_is_no_number_is_no_choice(
    demo_files: Pair, tmp_path: Path, device: str | None, verify: Verify
) -> None:
    """Others may be larger: what is left of a row that is broken is not believed either."""
    rare = 7  # a token of no prompt
    for value in (float("nan"), float("inf")):
        target = damaged(demo_files, tmp_path, value, "token_embd.weight", rare)
        pair = NativePair(target, demo_files.draft, n_ctx=256, threads=1, device=device)
        try:
            token, _ = pair.prompt(range(40, 90), verify=verify, seed=1)
            assert token == -1
            with pytest.raises(OptionError, match="prompt"):
                pair.round(8)
        finally:
            pair.close()


@pytest.mark.parametrize("verify", list(Verify))
@pytest.mark.parametrize("sampling", [*SAMPLERS, Sampling(presence_penalty=1.5, seed=1)])
@pytest.mark.parametrize("n_vocab", [3000, 40000])
def test_of_a_row_that_is_minus_infinity_nothing_is_chosen(
    device: str | None, verify: Verify, sampling: Sampling, n_vocab: int
) -> None:
    """Nor of one all of whose numbers are none. One number among them is the choice, also of a
    row that several workgroups share."""
    rows = np.random.default_rng(7).normal(0, 5, (6, n_vocab)).astype(np.float32)
    whole = choose(rows, verify, sampling, seed=1, device=device)
    rows[1] = rows[2] = -np.inf
    rows[2, n_vocab - 2] = -1e30
    rows[4] = np.nan
    in_round: dict[str, Any] = {"before": [1, 2], "block": range(5)}
    for block in ({}, in_round):
        tokens = choose(rows, verify, sampling, seed=1, device=device, **block)
        assert tokens[1] == tokens[4] == -1
        assert tokens[2] == n_vocab - 2
        if not sampling.presence_penalty:
            assert (tokens[[0, 3, 5]] == whole[[0, 3, 5]]).all()


def test_a_row_within_a_round_that_holds_infinity_ends_it(
    demo_files: Pair, tmp_path: Path, device: str | None
) -> None:
    """A weight so large that some texts make infinity of it, and it would be the largest."""

    def ended(at: int, device: str | None) -> bool:
        weights = np.zeros(n_embd, np.float32)
        weights[at] = 3.4e38
        target = damaged(demo_files, tmp_path, weights, "token_embd.weight", 7)
        pair = NativePair(target, demo_files.draft, n_ctx=256, threads=1, device=device)
        try:
            token, _ = pair.prompt(range(40, 90))
            emitted = (token,)
            for _ in range(12):
                if emitted[-1] in (7, -1):
                    break
                emitted = pair.round(8).emitted
            if emitted[-1] != -1 or emitted == (token,):
                return False
            assert pair.last_logits(len(emitted) - 1)[7] == np.inf
            with pytest.raises(OptionError, match="prompt"):
                pair.round(8)
            return True
        finally:
            pair.close()

    whole = NativePair(demo_files.target, n_ctx=256, threads=1)
    n_embd = whole.info.n_embd
    whole.close()
    at = next((at for at in range(64) if ended(at, None)), None)
    assert at is not None, "no text made infinity"
    assert device is None or ended(at, device)


def test_measuring_ends_with_the_same_error(
    demo_files: Pair, tmp_path: Path, cold: LoadedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the probe's text makes none, and where a step in the middle of it does."""
    round_, rounds = NativePair.round, 0

    def broken(self: NativePair, n_draft: int, **options: Any) -> NativeRound:
        nonlocal rounds
        rounds += 1
        made = round_(self, n_draft, **options)
        return made if rounds < 3 else replace(made, emitted=(-1,))

    monkeypatch.setattr(NativePair, "round", broken)
    with pytest.raises(NonFiniteError, match="not finite"):
        cold.measure_plain()
    monkeypatch.undo()
    assert cold.native.position == 0

    def ended(weights: np.ndarray) -> int | None:
        """The first choice that is none, of a text of 64 equal tokens and four steps."""
        target = damaged(demo_files, tmp_path, weights, "token_embd.weight", 7)
        pair = NativePair(target, demo_files.draft, n_ctx=256, threads=1)
        try:
            emitted = [pair.prompt([0] * 64)[0]]
            while emitted[-1] >= 0 and len(emitted) < 5:
                emitted += pair.round(0).emitted
            if emitted[-1] < 0:
                with pytest.raises(NonFiniteError, match="not finite"):
                    measure_costs(pair)
                assert pair.position == 0, "what it holds is of no use"
            return emitted.index(-1) if -1 in emitted else None
        finally:
            pair.close()

    def weights(at: int) -> np.ndarray:
        return np.where(np.arange(cold.native.info.n_embd) == at, np.float32(3.4e38), 0)

    assert ended(np.full(cold.native.info.n_embd, np.nan)) == 0
    assert any(ended(weights(at)) for at in range(cold.native.info.n_embd))
