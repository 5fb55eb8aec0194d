"""Exact: the probe says that drafted text is plain text bit by bit, keeps it, and is right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import app.engine.pair as pair_module
from app import paths
from app.binding import NativePair
from app.engine import Backend, LoadParams
from app.engine.key import key_of
from app.engine.pair import LoadedPair
from app.errors import ContextFullError
from app.jobs import JobCancelled
from app.library import Pair

from .conftest import BACKEND, opened

of_the_cpu = pytest.mark.skipif(BACKEND is not Backend.CPU, reason="said of the CPU")


@pytest.fixture
def pair(demo_files: Pair) -> Iterator[NativePair]:
    made = NativePair(demo_files.target, demo_files.draft, n_ctx=256, threads=2)
    yield made
    made.close()


def test_every_width_gives_the_bits_of_one_row(cold: LoadedPair) -> None:
    """Not said of the CPU alone, but a software renderer compiles shaders for minutes."""
    cold.native.prompt(range(40, 90))
    found = cold.native.probe_exact()
    assert (found.exact, found.width, found.widest) == (True, None, 16)
    assert cold.native.position == 0


@of_the_cpu
def test_without_a_drafter_too(demo_files: Pair) -> None:
    pair = NativePair(demo_files.target, None, n_ctx=256, threads=2)
    found = pair.probe_exact()
    pair.close()
    assert (found.exact, found.width, found.widest) == (True, None, 16)


@of_the_cpu
def test_a_question_goes_first(pair: NativePair) -> None:
    pair.cancel(True)
    with pytest.raises(JobCancelled):
        pair.probe_exact()
    pair.cancel(False)
    assert pair.probe_exact().exact


@of_the_cpu
def test_a_context_without_room_is_no_answer(demo_files: Pair) -> None:
    pair = NativePair(demo_files.target, demo_files.draft, n_ctx=2, threads=2)
    with pytest.raises(ContextFullError):
        pair.probe_exact()
    pair.close()


@of_the_cpu
def test_what_was_found_is_kept_for_the_next_load(
    demo_files: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "cache", lambda: tmp_path)

    def load() -> Iterator[LoadedPair]:
        return opened(demo_files, Backend.CPU, n_ctx=256)

    for first in load():
        assert first.model.exact is None
        first.probe_exact()
        assert first.model.exact is True
    assert list(json.loads((tmp_path / "exact.json").read_text()).values()) == [True]
    for again in load():
        assert again.model.exact is True
    described = pair_module._described
    monkeypatch.setattr(
        pair_module, "_described", lambda *of: replace(described(*of), layers_on_device=3)
    )
    for partly in load():
        assert partly.model.exact is None  # other processors do other parts of it


@of_the_cpu
def test_what_was_found_with_another_backend_is_not_used(
    demo_files: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU's library is built and replaced by itself, beside ours that stays."""
    monkeypatch.setattr("app.engine.key.backend_libraries", lambda: tuple(tmp_path.iterdir()))
    params = LoadParams(demo_files.target, demo_files.draft)
    names = {key_of(params, "Radeon")}
    for content in ("one", "another"):
        (tmp_path / "libggml-vulkan.so").write_text(content)
        names.add(key_of(params, "Radeon"))
    assert len(names) == 3
