"""On a CUDA device that the programs' build, or GGML_BACKEND_PATH, can use: rounds are launches of
captured graphs, and a row's bits do not depend on the rows beside it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from app.library import Library
from tests.native.conftest import RunProgram

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

NO_DEVICE = 77


@pytest.fixture(scope="session")
def demo_graphs(tools: Path) -> str:
    """What `test-cuda-graphs` says of the demo pair."""
    demo = Library.of_user().open("demo")
    done = subprocess.run(
        [str(tools / "test-cuda-graphs"), str(demo.target), str(demo.draft)],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode == NO_DEVICE:
        pytest.skip("no CUDA device")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_rounds_launch_captured_graphs(demo_graphs: str) -> None:
    assert demo_graphs.count(" 0 captured, 0 evaluated directly") == 4
    assert demo_graphs.splitlines()[-1] == "all passed"


@pytest.mark.usefixtures("demo_graphs")
def test_a_row_has_the_same_bits_whatever_stands_beside_it(program: RunProgram) -> None:
    arguments = ("--device", "CUDA0", "--kv", "f16,q8_0", "--contexts", "10,230,1000")
    assert program("test-exact", *arguments).splitlines()[-1] == "all passed"


@pytest.mark.usefixtures("demo_graphs")
def test_a_kept_graph_gives_what_one_built_anew_gives(program: RunProgram) -> None:
    assert program("test-kept-graphs", "--device", "CUDA0").splitlines()[-1] == "all passed"


@pytest.mark.usefixtures("demo_graphs")
def test_cards_with_less_shared_memory_are_exact_too(program: RunProgram) -> None:
    """As on compute capability 8.6, 8.9 and 12.x."""
    arguments = ("--device", "CUDA0", "--contexts", "10,230")
    told = program("test-exact", *arguments, GGML_CUDA_FEW_SHARED="99").splitlines()
    found = re.fullmatch(r"products of few columns: (\d+) with .*, (\d+) with small ones", told[-2])
    assert found
    assert [int(n) > 0 for n in found.groups()] == [False, True]
    assert told[-1] == "all passed"


@pytest.mark.usefixtures("demo_graphs")
def test_devices_that_share_each_layer_draft_too(program: RunProgram) -> None:
    """As `-sm tensor` of llama.cpp's programs has them do: a verify ended the process."""
    demo = Library.of_user().open("demo")
    pair = ("-m", demo.target, "-md", demo.draft, "--spec-type", "draft-dflash", "-ngl", 99)
    asked = (*pair, "--temp", 0, "-n", 40, "-p", "hello", "--log-colors", "off", "-sm")
    told = [
        program("llama-speculative-simple", *asked, mode, CUDA_VISIBLE_DEVICES="0")
        for mode in ("none", "tensor")
    ]
    alone, shared = (re.findall(r"n_(?:predict|accept) += (\d+)", text) for text in told)
    assert len(alone) == 2
    assert alone == shared
