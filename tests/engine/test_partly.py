"""A target that does not fit on the card: its last layers there, the others the processor's."""

from __future__ import annotations

import pytest

from app.binding import NativePair, estimate
from app.engine import Backend
from app.errors import OutOfMemoryError
from app.library import Pair

from .conftest import BACKEND
from .test_memory import memories, place

pytestmark = [
    pytest.mark.usefixtures("_named_backend"),
    pytest.mark.skipif(BACKEND is not Backend.GPU, reason="of a graphics card's memory"),
]

N_CTX = 120_000  # of which layers of the demo take enough to make a difference
LIMIT = "SLIPSTREAM_GPU_MEMORY"
MIB = 2**20


def test_as_many_layers_as_fit_with_the_context_that_was_asked_for(
    demo_files: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = (demo_files.target, demo_files.draft)
    whole = estimate(*files, device=place(), n_ctx=N_CTX).footprint.device.total
    monkeypatch.setenv(LIMIT, str(whole - 8 * MIB))
    before = estimate(*files, device=place(), n_ctx=N_CTX)
    loaded = NativePair(*files, device=place(), n_ctx=N_CTX, threads=1)
    info = loaded.info
    prompt = loaded.tokenize("What is DFlash?")
    plain, drafted = (answer(loaded, prompt, width) for width in (0, 7))
    loaded.close()
    with pytest.raises(OutOfMemoryError, match=f"Only {info.n_layers_device} of {info.n_layers} "):
        NativePair(*files, device=place(), n_ctx=N_CTX, threads=1, least_share=0.99)
    assert before.n_ctx == info.n_ctx == N_CTX
    assert 0 < info.n_layers_device < info.n_layers
    for told, taken in zip(memories(before.footprint), memories(info.footprint), strict=True):
        assert told.total == pytest.approx(taken.total, rel=0.1)
    assert info.footprint.device.total < whole - 8 * MIB
    assert info.footprint.device.drafter > 0  # it stays beside the head
    assert info.footprint.host.weights > 0
    assert drafted == plain


def answer(pair: NativePair, prompt: list[int], width: int) -> list[int]:
    pair.reset()
    tokens = [pair.prompt(prompt, drafting=width > 0)[0]]
    while len(tokens) < 8:
        tokens += pair.round(width).emitted
    return tokens[:8]


def test_where_not_one_layer_fits_it_is_refused(
    demo_files: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT, str(64 * MIB))
    files = (demo_files.target, demo_files.draft)
    with pytest.raises(OutOfMemoryError, match=r"has 0\.1 GB free") as refused:
        NativePair(*files, device=place(), n_ctx=N_CTX, threads=1)
    assert "or the CPU" in refused.value.remedy
