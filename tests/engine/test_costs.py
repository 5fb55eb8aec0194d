"""What rounds cost, and what the governor makes of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from app.binding import MAX_BLOCK
from app.binding.inspection import measure_costs, set_costs
from app.binding.records import Costs
from app.engine import AskParams, Backend, WidthReason
from app.engine.pair import LoadedPair
from app.errors import OptionError
from app.jobs import JobCancelled
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


def test_measuring_is_short_and_whole(cold: LoadedPair) -> None:
    start = time.perf_counter()
    found = measure_costs(cold.native)
    assert time.perf_counter() - start < 2.5
    assert found.plain > 0
    assert found.draft > 0
    assert found.draft_one > 0
    assert found.verify[16] > 0
    assert cold.native.position == 0


def test_measuring_that_is_cancelled_leaves_no_prompt(cold: LoadedPair) -> None:
    for _ in range(20):  # on a busy machine it can be over before
        timer = threading.Timer(0.01, cold.native.cancel, (True,))
        timer.start()
        try:
            measure_costs(cold.native)
        except JobCancelled:
            break
        finally:
            timer.join()
            cold.native.cancel(False)
    else:
        pytest.fail("it was never cancelled")
    assert cold.native.position == 0
    with pytest.raises(OptionError, match="needs a prompt"):
        cold.native.round(0)


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
    set_costs(cold.native, given)
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
        set_costs(cold.native, made_up(0.0, 1.0, 1.0))


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
