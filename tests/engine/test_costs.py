"""What rounds cost, kept between runs; and what the governor makes of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.binding import MAX_BLOCK, Costs, NativePair
from app.engine import AskParams, Backend, WidthReason, costs
from app.engine.pair import LoadedPair
from app.errors import OptionError
from app.library import Pair

from .conftest import Asked, ask, chat, opened

QUESTION = chat("Tell me a short story about a cat.")


@pytest.fixture(scope="module")
def own(demo_files: Pair) -> Iterator[LoadedPair]:
    """A pair of its own: what the governor was told stays with it."""
    yield from opened(demo_files, Backend.CPU, n_ctx=512)


@pytest.fixture
def cold(own: LoadedPair) -> LoadedPair:
    own.native.reset()
    return own


def made_up(plain: float, draft: float, row: float) -> Costs:
    verify = tuple(plain + row * w if 2 <= w <= 16 else 0.0 for w in range(MAX_BLOCK + 1))
    return Costs(plain, draft, draft, verify)


def test_they_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "costs.json"
    kept = made_up(1, 2, 0.5)
    costs.save(file, "a", kept)
    costs.save(file, "b", replace(kept, plain=3.0))
    assert costs.load(file, "a") == kept
    assert costs.load(file, "c") is None
    assert [path.name for path in file.parent.iterdir()] == ["costs.json"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"a": 1}', '{"a": {"plain": 0, "draft": 1, "draft_one": 1, "verify": [0]}}'],
)
def test_what_is_damaged_is_measured_again(tmp_path: Path, text: str) -> None:
    file = tmp_path / "costs.json"
    file.write_text(text)
    assert costs.load(file, "a") is None
    costs.save(file, "a", made_up(1, 2, 0.5))
    assert costs.load(file, "a") == made_up(1, 2, 0.5)


def test_only_the_last_pairs_are_remembered(tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    for i in range(70):
        costs.save(file, str(i), made_up(1, 2, 0.5))
    assert len(json.loads(file.read_text())) == 64
    assert costs.load(file, "5") is None
    assert costs.load(file, "69") is not None


def test_measuring_is_short_and_whole(cold: LoadedPair) -> None:
    start = time.perf_counter()
    found = cold.native.measure_costs()
    assert time.perf_counter() - start < 2.5
    assert found.plain > 0
    assert found.draft > 0
    assert found.draft_one > 0
    assert found.verify[16] > 0
    assert cold.native.position == 0


@pytest.mark.parametrize(("slower", "kept"), [(1.0, True), (2.0, False)])
def test_a_disturbed_measurement_is_thrown_away(
    own: LoadedPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slower: float, kept: bool
) -> None:
    told: list[Costs] = []
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    monkeypatch.setattr(LoadedPair, "measure_plain", lambda self: 1000.0 / slower)
    monkeypatch.setattr(NativePair, "measure_costs", lambda self: made_up(1.0, 1.0, 0.1))
    monkeypatch.setattr(NativePair, "set_costs", lambda self, costs: told.append(costs))
    own.measure_costs()
    assert bool(told) is kept
    assert (tmp_path / "cache" / "costs.json").exists() is kept


def reasons(asked: Asked) -> list[tuple[WidthReason, int]]:
    records = [piece.round for piece in asked.stream if piece.round]
    return [(record.reason, len(record.drafted) + 1) for record in records]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("drafts are free", made_up(1.0, 0.1, 0.01)),
        ("a width pays", made_up(1.0, 0.1, 0.45)),
        ("nothing pays", made_up(1.0, 100.0, 10.0)),
    ],
)
def test_no_width_changes_the_text(cold: LoadedPair, name: str, given: Costs) -> None:
    plain = ask(cold, QUESTION, AskParams(max_tokens=100, draft=False)).answer
    cold.native.set_costs(given)
    governed = ask(cold, QUESTION, AskParams(max_tokens=100))
    assert governed.answer.token_ids == plain.token_ids
    told = reasons(governed)
    if name == "drafts are free":  # how wide, the times that are measured meanwhile decide too
        assert any(width > 1 for _, width in told)
    if name == "nothing pays":
        assert set(told) == {(WidthReason.PLAIN, 1)}
    fixed = ask(cold, QUESTION, AskParams(max_tokens=100, block=8))
    assert {reason for reason, _ in reasons(fixed)} == {WidthReason.FIXED}
    assert fixed.answer.token_ids == plain.token_ids


def test_costs_must_be_positive(cold: LoadedPair) -> None:
    with pytest.raises(OptionError):
        cold.native.set_costs(made_up(0.0, 1.0, 1.0))


def test_a_round_waits_once_and_keeps_its_graphs(cold: LoadedPair) -> None:
    """Greedy, the whole block: from the second round on nothing is built, 31 tokens come back."""
    cold.native.prompt(cold.prompt(QUESTION, think=False).tokens)
    rounds = [cold.native.round(15) for _ in range(12)]
    assert {native.syncs for native in rounds} == {1}
    assert {native.graphs_run for native in rounds} == {2}
    assert all(native.graphs_rebuilt == 0 for native in rounds[1:])
    assert {native.bytes_to_host for native in rounds} == {4 * (15 + 16)}


def test_a_first_answer_drafts_before_costs_are_measured(demo_files: Pair) -> None:
    for loaded in opened(demo_files, Backend.CPU, n_ctx=512):
        told = reasons(ask(loaded, QUESTION, AskParams(max_tokens=64)))
    assert told[:2] == [(WidthReason.PLAIN, 1)] * 2  # what a width is compared with
    assert told[2][1] > 1
