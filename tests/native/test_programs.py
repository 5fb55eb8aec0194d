"""The patches' own tests, and those of the tree that they touch, on all devices of the build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.native.conftest import RunProgram

# The first test waits for the programs where they are not built yet.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_every_way_to_run_the_gated_delta_net_agrees(program: RunProgram) -> None:
    shown = program("test-gdn-chunked")
    assert "fused" in shown
    assert "portable" in shown
    assert shown.splitlines()[-1] == "all passed"


def test_what_is_taken_back_was_never_there(program: RunProgram, demo_target: Path) -> None:
    shown = program("test-recurrent-rollback", demo_target)
    assert len(re.findall(r" ok, error ", shown)) == 10


def test_a_device_that_lacks_fails_or_throws(
    program: RunProgram, demo_target: Path, demo_draft: Path
) -> None:
    shown = program("test-faults", demo_target, demo_draft)
    assert "neither takes plain operations" in shown
    assert shown.splitlines()[-1] == "all passed"


def test_the_op_computes_the_same_on_its_own(program: RunProgram) -> None:
    # The CPU, only tested when named, is compared with itself: the harness and shapes.
    op = ("-o", "GATED_DELTA_NET_TRACE")
    shown = program("test-backend-ops", "-b", "CPU", *op) + program("test-backend-ops", *op)
    counts = re.findall(r"(\d+)/(\d+) tests passed", shown)
    assert counts
    assert all(passed == of != "0" for passed, of in counts)


def test_quantized_products_do_not_depend_on_the_rows_beside(program: RunProgram) -> None:
    shown = program("test-kquants")
    assert shown.splitlines()[-1].endswith("all passed")
    if "CPU_KQUANTS" not in shown:
        pytest.skip("this processor has neither AVX2 nor VNNI")


def test_graphs_are_whole_whoever_comes_late(program: RunProgram) -> None:
    """Three callers, up to five threads each; nothing of a graph is left when it is over."""
    assert program("test-crew").splitlines()[-1] == "all passed"


def test_a_draft_chooses_among_what_the_text_shows(program: RunProgram, llama_source: Path) -> None:
    (vocabulary,) = llama_source.rglob("models/ggml-vocab-qwen35.gguf")
    shown = program("test-draft-vocabulary", vocabulary)
    assert shown.splitlines()[-1] == "all passed"


def test_a_row_has_the_same_bits_whatever_stands_beside_it(
    program: RunProgram, demo_target: Path
) -> None:
    """Operation by operation, in a random model of each type, and in the demo pair's target with
    the cache that the engine gives it."""
    shown = program("test-exact", "--contexts", "10,600")
    assert shown.count("the same bits for 1 to 32 rows") >= 60
    shown = program("test-exact", "--kv", "f32", "--no-flash", demo_target)
    assert shown.count("the same bits for 1 to 32 rows") == 2


def test_a_kept_graph_gives_what_one_built_anew_gives(program: RunProgram) -> None:
    """Two contexts do the same by chance: passes of any width, rewinds, shifts, adapters."""
    shown = program("test-kept-graphs")
    assert shown.count("  script ") == 8
    assert shown.splitlines()[-1] == "all passed"


def test_other_architectures_are_as_before(program: RunProgram) -> None:
    shown = program("test-llama-archs")
    assert re.search(r"qwen35\|.*OK", shown)
