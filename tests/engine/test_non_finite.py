"""A model whose numbers are none: it says so, and the next one answers."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from app.binding import NativePair, NativeRound
from app.engine import AskParams, Backend, LoadParams
from app.engine.pair import LoadedPair
from app.errors import NonFiniteError
from app.library import Pair

from .conftest import ask, chat

QUESTION = chat("What is DFlash?")


def damaged(files: Pair, folder: Path, value: float) -> Path:
    """The target with one weight of its last norm replaced."""
    copy = folder / "damaged.gguf"
    shutil.copy(files.target, copy)
    reader = gguf.GGUFReader(copy, "r+")
    (tensor,) = (t for t in reader.tensors if t.name == "output_norm.weight")
    assert tensor.data.dtype == np.float32
    tensor.data[3] = value
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
    """The largest of numbers that are none is the first token."""
    params = AskParams(max_tokens=60, block=4)
    whole = ask(cold, QUESTION, params).answer
    rounds, round_, finite = 0, NativePair.round, NativePair.finite

    def broken(self: NativePair, n_draft: int, *, governed: bool = False) -> NativeRound:
        nonlocal rounds
        rounds += 1
        made = round_(self, n_draft, governed=governed)
        return made if rounds < 3 else replace(made, emitted=(*made.emitted[:-1], 0))

    monkeypatch.setattr(NativePair, "round", broken)
    monkeypatch.setattr(NativePair, "finite", lambda self, row: rounds < 3)
    with pytest.raises(NonFiniteError):
        ask(cold, QUESTION, params)
    assert rounds == 3
    # A first token that was chosen among numbers is a token.
    rounds = 0
    monkeypatch.setattr(NativePair, "finite", finite)
    assert 0 in ask(cold, QUESTION, params).answer.token_ids
    monkeypatch.undo()
    assert ask(cold, QUESTION, params).answer.token_ids == whole.token_ids
