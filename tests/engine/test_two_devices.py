"""Target and drafter on different devices, and one pair after the other on either.

Needs a graphics card or a software renderer: tests/native/test_vulkan.py runs it on lavapipe.
"""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from app.engine import AskParams, Backend, LoadParams
from app.engine.pair import LoadedPair
from app.library import Pair

from .conftest import ask, chat

pytestmark = pytest.mark.usefixtures("_named_backend")

QUESTION = chat("What is DFlash?")
SAME = AskParams(max_tokens=40, block=16)
PLACES = [(Backend.CPU, Backend.GPU), (Backend.GPU, Backend.CPU)]
TOGGLES = 10


def opened(files: Pair, target: Backend, draft: Backend) -> LoadedPair:
    params = LoadParams(
        files.target, files.draft, target, n_ctx=512, threads=1, draft_backend=draft
    )
    return LoadedPair(params)


@pytest.mark.parametrize(("target", "draft"), PLACES)
def test_a_drafter_elsewhere_drafts_the_same(
    demo_files: Pair, target: Backend, draft: Backend
) -> None:
    beside = opened(demo_files, Backend.CPU, Backend.CPU)
    wanted = ask(beside, QUESTION, SAME).answer
    beside.close()
    apart = opened(demo_files, target, draft)
    assert apart.model.backend == target
    assert apart.model.draft_device
    assert apart.model.draft_device.kind == draft
    for _ in range(2):  # the second time from what is held
        got = ask(apart, QUESTION, SAME).answer
        assert got.token_ids == wanted.token_ids
        assert got.totals.mean_accepted_length == wanted.totals.mean_accepted_length
    plain = ask(apart, QUESTION, AskParams(max_tokens=40, draft=False)).answer
    assert plain.token_ids == wanted.token_ids
    apart.close()


def resident_mib() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def test_memory_is_back_after_ten_switches(demo_files: Pair) -> None:
    def visit(place: Backend) -> None:
        loaded = opened(demo_files, place, place)
        ask(loaded, QUESTION, AskParams(max_tokens=4))
        loaded.close()

    def after_each(visits: int) -> list[float]:
        held = []
        for turn in range(visits):
            visit((Backend.CPU, Backend.GPU)[turn % 2])
            held.append(resident_mib())
        return held

    # The first visits leave what is loaded once: drivers, shaders, the allocator's reserve.
    first, later = after_each(4)[-2:], after_each(TOGGLES)[-2:]
    assert max(later) < 1.05 * max(first)
