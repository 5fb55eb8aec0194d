"""How keys and values are kept: the text with each type, and that it is the one in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from app.binding import NativePair
from app.engine import AskParams, Backend, KvType, LoadParams
from app.engine.key import key_of
from app.engine.pair import LoadedPair
from app.errors import OptionError
from app.library import Pair

from .conftest import BACKEND, ask, chat

pytestmark = pytest.mark.skipif(BACKEND is not Backend.CPU, reason="the CPU's kernels")

TOKENS = 64


@pytest.fixture(scope="module", params=list(KvType))
def kept(demo_files: Pair, request: pytest.FixtureRequest) -> Iterator[LoadedPair]:
    loaded = LoadedPair(
        LoadParams(
            demo_files.target,
            demo_files.draft,
            Backend.CPU,
            n_ctx=1024,
            threads=1,
            kv_type=request.param,
        )
    )
    yield loaded
    loaded.close()


@pytest.mark.parametrize("index", [0, 40])
def test_drafting_changes_no_text(kept: LoadedPair, heldout: dict[str, Any], index: int) -> None:
    question = chat(heldout["guide"][index]["prompt"])
    texts = [
        ask(kept, question, AskParams(max_tokens=TOKENS, draft=draft)).answer.token_ids
        for draft in (False, True)
    ]
    assert len(texts[0]) > 10
    if texts[0] != texts[1]:
        first = next(i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b)
        found = kept.control(question, AskParams(), texts[0], first)
        assert found.explains, (first, found)


def test_what_is_chosen_is_used(demo_files: Pair) -> None:
    """The coarser it is, the further are the logits from those of F32, which is the usual one
    here: the guide's weights are F32."""
    import numpy as np

    def logits(kind: KvType | None) -> Any:
        pair = NativePair(demo_files.target, n_ctx=512, threads=1, kv_type=kind)
        try:
            pair.prompt(list(range(300, 400)), drafting=False)
            return pair.last_logits()
        finally:
            pair.close()

    whole = logits(None)
    assert np.array_equal(whole, logits(KvType.F32))
    halves, bytes_, nibbles = (
        float(np.abs(logits(kind) - whole).max()) for kind in (KvType.F16, KvType.Q8_0, KvType.Q4_0)
    )
    assert 0 < halves < bytes_ < nibbles


def test_what_cannot_be_kept_so_is_refused(demo_files: Pair) -> None:
    with pytest.raises(OptionError) as caught:
        NativePair(demo_files.target, n_ctx=256, kv_type="iq2_xs")
    assert "`iq2_xs`" in caught.value.message
    assert "q8_0" in caught.value.remedy


def test_what_was_found_out_with_another_one_is_not_used(demo_files: Pair) -> None:
    names = {key_of(LoadParams(demo_files.target, kv_type=kind), "CPU") for kind in (None, *KvType)}
    assert len(names) == 1 + len(KvType)
