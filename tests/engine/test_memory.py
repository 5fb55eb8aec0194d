"""What a load takes is known before it, and what does not fit is refused with a way out."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from app.binding import Footprint, Memory, NativePair, devices, estimate
from app.binding.library import talkative
from app.engine import Backend
from app.jobs import JobCancelled
from app.library import Pair
from tests.conftest import ROOT

from .conftest import BACKEND

pytestmark = pytest.mark.usefixtures("_named_backend")

MIB = 2**20
OPENED = "loaded meta data with"  # llama.cpp's line for a model's file


def place() -> str | None:
    gpus = [d.name for d in devices() if d.kind == "gpu" and d.usable]
    return gpus[0] if BACKEND is Backend.GPU else None


def size() -> int:
    """Bytes of this process's addresses; `resident`: of its memory."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * 4096


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("draft", [True, False])
@pytest.mark.parametrize("n_ctx", [512, 8192])
def test_an_estimate_is_what_a_load_then_takes(demo_files: Pair, n_ctx: int, draft: bool) -> None:
    files = (demo_files.target, demo_files.draft if draft else None)
    before = estimate(*files, device=place(), n_ctx=n_ctx)
    assert before.n_ctx == n_ctx
    loaded = NativePair(*files, device=place(), n_ctx=n_ctx, threads=1)
    after = loaded.info.footprint
    loaded.close()
    for told, taken in zip(memories(before.footprint), memories(after), strict=True):
        assert told.total == pytest.approx(taken.total, rel=0.1)
    on = after.device if BACKEND is Backend.GPU else after.host
    assert on.weights >= demo_files.target.stat().st_size * 0.9
    assert (on.drafter > 0) is draft
    assert on.context > 0
    assert on.compute > 0
    assert on.free > 0


@pytest.mark.skipif(BACKEND is Backend.GPU, reason="a card has its own copy of all weights")
@pytest.mark.parametrize("kind", ["q8_0", "q4_k_m"])
def test_weights_that_are_laid_out_anew_are_no_file(
    demo_files: Pair, tools: Path, tmp_path: Path, kind: str
) -> None:
    """They take memory whatever is read of them; a load that has none for them would be killed."""
    target = tmp_path / "target.gguf"
    command = [tools / "llama-quantize", demo_files.target, target, kind]
    subprocess.run(command, check=True, capture_output=True)
    told = estimate(target, n_ctx=512).footprint.host
    loaded = NativePair(target, n_ctx=512, threads=1)
    taken = loaded.info.footprint.host
    loaded.close()
    assert told.total == pytest.approx(taken.total, rel=0.1)
    assert told.mapped == pytest.approx(taken.mapped, rel=0.1)
    assert taken.mapped < 0.6 * taken.weights
    whole = estimate(demo_files.target, n_ctx=512).footprint.host
    assert whole.mapped == pytest.approx(whole.weights, rel=0.05)


def memories(footprint: Footprint) -> tuple[Memory, ...]:
    return footprint.device, footprint.draft_device, footprint.host


@pytest.mark.skipif(BACKEND is Backend.GPU, reason="a card's memory is not the process's")
def test_the_process_grows_by_what_a_context_takes(demo_files: Pair) -> None:
    sizes, grown, filled = [], [], []
    for n_ctx in (512, 512, 65_536):  # the first one also brings what stays
        space, before = size(), resident()
        loaded = NativePair(demo_files.target, n_ctx=n_ctx, threads=1)
        grown.append(size() - space)
        filled.append(resident() - before)
        host = loaded.info.footprint.host
        sizes.append(host.context + host.compute)
        loaded.close()
    assert grown[2] - grown[1] == pytest.approx(sizes[2] - sizes[1], rel=0.1)
    assert filled[2] - filled[1] < 0.1 * (sizes[2] - sizes[1])  # its memory is taken with use


@pytest.mark.skipif(BACKEND is Backend.GPU, reason="a card's memory is not the process's")
def test_a_context_that_is_forgotten_gives_its_memory_back(demo_files: Pair) -> None:
    loaded = NativePair(demo_files.target, n_ctx=65_536, threads=1)
    tokens = loaded.tokenize("fox " * 600)[:600]
    share = loaded.info.footprint.host.context * len(tokens) // loaded.info.n_ctx
    loaded.prompt(tokens, drafting=False)  # brings what passes take besides
    loaded.reset()
    empty = resident()
    first = loaded.prompt(tokens, drafting=False)
    full = resident()
    loaded.reset()
    left = resident()
    again = loaded.prompt(tokens, drafting=False)
    loaded.close()
    assert full - empty > 0.9 * share
    assert left - empty < 0.2 * (full - empty)
    assert again == first  # what it was filled with is gone


def test_as_much_context_as_fits_is_no_more_than_32768(demo_files: Pair) -> None:
    assert estimate(demo_files.target, demo_files.draft, device=place()).n_ctx == 32_768


@pytest.mark.parametrize("draft", [True, False])
@pytest.mark.parametrize("n_ubatch", [8, 512])
def test_the_bound_by_headers_is_no_less_than_the_estimate(
    demo_files: Pair, caplog: pytest.LogCaptureFixture, n_ubatch: int, draft: bool
) -> None:
    files = (demo_files.target, demo_files.draft if draft else None)
    for n_ctx in (256, 4096, 32_768, 131_072):
        place_and_sizes: dict[str, Any] = {"device": place(), "n_ctx": n_ctx, "n_ubatch": n_ubatch}
        with told(caplog), suppress(JobCancelled):
            NativePair(*files, progress=lambda _: False, **place_and_sizes)
        (bound,) = re.findall(r"takes at most (\d+) bytes", caplog.text)
        total = estimate(*files, **place_and_sizes).footprint.total
        assert total <= int(bound) < 5 * total


def test_where_there_is_room_every_model_is_opened_once(
    demo_files: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    with told(caplog):
        loaded = NativePair(demo_files.target, demo_files.draft, device=place(), n_ctx=None)
    assert loaded.info.n_ctx == 32_768
    loaded.close()
    assert caplog.text.count(OPENED) == 2


@contextmanager
def told(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """All that a load says is in `caplog` alone."""
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="app.native"), talkative():
        yield


def in_little_memory(demo_files: Pair, program: str) -> list[Any]:
    """What a program prints that may take more memory only as it says itself."""
    head = f"""
        import json, resource
        from pathlib import Path
        from app.binding import NativePair, estimate
        from app.errors import OutOfMemoryError
        target, draft = Path({str(demo_files.target)!r}), Path({str(demo_files.draft)!r})

        def allow(more):
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            hard = resource.getrlimit(resource.RLIMIT_AS)[1]
            limit = resource.RLIM_INFINITY if more is None else size + more
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown: list[Any] = json.loads(done.stdout)
    return shown


@pytest.mark.skipif(sys.platform != "linux", reason="limits a process's memory")
@pytest.mark.skipif(BACKEND is Backend.GPU, reason="of the machine's memory")
def test_the_context_shrinks_to_what_fits_and_more_is_refused(demo_files: Pair) -> None:
    shown = in_little_memory(
        demo_files,
        """
        whole = estimate(target, draft)
        allow(whole.footprint.host.total + (280 << 20) - (20 << 20))
        some = estimate(target, draft)
        try:
            NativePair(target, draft, n_ctx=whole.n_ctx * 8, threads=1)
        except OutOfMemoryError as error:
            refused = [error.message, error.remedy]
        loaded = NativePair(target, draft, n_ctx=None, threads=1)
        allow(None)
        print(json.dumps([whole.n_ctx, some.n_ctx, loaded.info.n_ctx, *refused]))
        loaded.close()
        """,
    )
    whole, some, loaded, message, remedy = shown
    assert whole == 32_768
    assert 4096 < some < whole
    assert 4096 <= loaded <= some  # in one piece there may be less
    assert re.search(r"262144 tokens it takes [\d.]+ GB, and this machine has [\d.]+ GB", message)
    assert re.search(r"Choose a context of \d+, which fits", remedy)


@pytest.mark.skipif(sys.platform != "linux", reason="limits a process's memory")
@pytest.mark.skipif(BACKEND is Backend.GPU, reason="of the machine's memory")
def test_out_of_memory_in_a_chat_leaves_the_pair_usable(demo_files: Pair) -> None:
    shown = in_little_memory(
        demo_files,
        """
        loaded = NativePair(target, draft, n_ctx=8192, threads=1)
        tokens = loaded.tokenize("The quick brown fox. ")
        said = []
        allow(4 << 20)
        try:
            loaded.prompt(tokens)
        except OutOfMemoryError as error:
            said = [error.message, error.remedy]
        allow(None)
        first, _ = loaded.prompt(tokens)
        print(json.dumps([said, first >= 0, loaded.round(4).emitted != ()]))
        loaded.close()
        """,
    )
    (message, remedy), first, emitted = shown
    assert "memory" in message
    assert "smaller context" in remedy
    assert first
    assert emitted


@pytest.mark.skipif(sys.platform != "linux", reason="limits a process's memory")
@pytest.mark.skipif(BACKEND is Backend.GPU, reason="of the machine's memory")
@pytest.mark.parametrize("room", [1, 2, 3, 4, 6])
def test_no_room_for_the_graph_of_another_width_is_no_end(demo_files: Pair, room: int) -> None:
    shown = in_little_memory(
        demo_files,
        f"""
        loaded = NativePair(target, draft, n_ctx=8192, threads=1)
        tokens = loaded.tokenize("The quick brown fox. ")
        loaded.prompt(tokens, drafting=False)
        short = False
        allow({room} << 20)
        try:
            for n in range(16):
                loaded.round_given([5] * n)
        except OutOfMemoryError:
            short = True
        allow(None)
        first, _ = loaded.prompt(tokens)
        print(json.dumps([short, first >= 0]))
        loaded.close()
        """,
    )
    assert shown == [True, True]


@pytest.mark.skipif(sys.platform != "linux", reason="limits a process's memory")
@pytest.mark.skipif(BACKEND is Backend.GPU, reason="of the machine's memory")
@pytest.mark.parametrize("room", [0, 0.25, 0.5, 1, 2])
def test_no_room_for_the_graph_of_another_draft_is_no_end(demo_files: Pair, room: float) -> None:
    """Behind rounds as wide, so that only the drafter's graph is a new one."""
    shown = in_little_memory(
        demo_files,
        f"""
        loaded = NativePair(target, draft, n_ctx=8192, threads=1)
        tokens = loaded.tokenize("The quick brown fox. ")
        loaded.prompt(tokens)
        for n in range(16):
            loaded.round_given([5] * n)
        allow(int({room} * (1 << 20)))
        try:
            for n in range(1, 16):
                loaded.round(n)
        except OutOfMemoryError:
            pass
        allow(None)
        first, _ = loaded.prompt(tokens)
        print(json.dumps(first >= 0))
        loaded.close()
        """,
    )
    assert shown is True


@pytest.mark.skipif(sys.platform != "linux", reason="limits a process's memory")
@pytest.mark.skipif(BACKEND is Backend.GPU, reason="of the machine's memory")
def test_a_file_that_no_room_is_left_to_map_is_not_called_broken(
    demo_files: Pair, tmp_path: Path
) -> None:
    large = tmp_path / "large.gguf"
    shutil.copyfile(demo_files.target, large)
    os.truncate(large, 3 << 30)  # a hole behind the weights takes no room on the disk
    shown = in_little_memory(
        demo_files,
        f"""
        said = []
        allow(1500 << 20)
        try:
            NativePair(Path({str(large)!r}), draft, n_ctx=512, threads=1)
        except OutOfMemoryError as error:
            said = [error.message, error.remedy]
        print(json.dumps(said))
        """,
    )
    message, remedy = shown
    assert "large.gguf" in message
    assert "smaller" in remedy
