"""Numbers and names that C would wrap, cut off or run out of: refused, and nothing ends.

In a process of its own, which a fault would end.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.binding.arrays import int32, int64, ints, place, text, uint64
from app.errors import OptionError
from app.library import Library
from tests.conftest import ROOT

WRONG = (2**31, 2**32, 2**32 + 5, 2**63, 2**64, 2**64 + 1, 10**30, -(2**31) - 1, -(2**63) - 1)
EDGES = (0, -1, 1, 2**31 - 1, -(2**31), 7)


@pytest.mark.parametrize("wrong", WRONG)
def test_what_would_wrap_is_refused_by_its_name(wrong: int) -> None:
    with pytest.raises(OptionError, match=f"`row`.*{wrong}"):
        int32(wrong, "row")
    with pytest.raises(OptionError, match=str(wrong)):
        ints([1, wrong])
    if not -(2**63) <= wrong < 2**63:
        with pytest.raises(OptionError):
            int64(wrong, "width")


@pytest.mark.parametrize("wrong", [-1, 2**64])
def test_a_seed_beyond_its_bits(wrong: int) -> None:
    with pytest.raises(OptionError, match="`seed`"):
        uint64(wrong, "seed")


def test_what_fits_passes() -> None:
    assert [int32(value, "x") for value in EDGES] == list(EDGES)
    assert list(ints(EDGES)) == list(EDGES)
    assert uint64(2**64 - 1, "seed") == 2**64 - 1


@pytest.mark.parametrize("wrong", ["1", 1.0, None])
def test_what_is_no_whole_number(wrong: object) -> None:
    with pytest.raises(OptionError):
        int32(wrong, "row")  # type: ignore[arg-type]
    with pytest.raises(OptionError):
        ints([1, wrong])  # type: ignore[list-item]


def test_a_name_that_c_would_cut_off() -> None:
    with pytest.raises(OptionError, match="device"):
        text("CPU\0", "a device")
    with pytest.raises(OptionError, match="device"):
        text("\ud800", "a device")
    with pytest.raises(OptionError, match=r"x\.gguf"):
        place(Path("x.gguf\0.txt"))


CALLS = """
import itertools, sys
from pathlib import Path
import numpy as np
from app.binding import (
    NativePair, NativeVocabulary, Sampling, Verify, estimate, quantize, row_bytes,
)
from app.binding.inspection import choose, eval_draft, eval_target, measure_costs, set_costs
from app.binding.records import Costs
from app.errors import SlipstreamError
from app.limits import RANGES
target, draft = map(Path, sys.argv[1:3])
numbers = [int(n) for n in sys.argv[3].split(",")]

def tried(name, call):
    print(name, flush=True)
    try:
        return call()
    except SlipstreamError as error:
        assert error.message and error.remedy

def on(pair, n):
    prompt = [1, 2, 3]
    tried(f"token_bytes {n}", lambda: pair.token_bytes(n))
    tried(f"is_end {n}", lambda: pair.is_end(n))
    tried(f"prompt {n}", lambda: pair.prompt([1, n]))
    tried(f"keep {n}", lambda: pair.prompt(prompt, keep=n))
    for verify in Verify:
        tried(f"seed {n}", lambda: pair.prompt(prompt, verify=verify, seed=n))
        some = {"verify": verify, "sampling": tried("top_k", lambda: Sampling(top_k=n))}
        tried(f"{verify} {n}", lambda: pair.prompt(prompt, **some))
        tried(f"round {n}", lambda: pair.round(n))
        tried(f"governed {n}", lambda: pair.round(n, governed=True))
    tried(f"round_given {n}", lambda: pair.round_given([n]))
    tried("round_given", lambda: pair.round_given([1] * 300))
    tried(f"last_logits {n}", lambda: pair.last_logits(n))
    tried(f"costs {n}", lambda: set_costs(pair, Costs(n, n, n, (n,) * 300)))
    tried(f"governed {n}", lambda: pair.round(3, governed=True))
    tried(f"eval_target {n}", lambda: eval_target(pair, [1, n]))
    tried(f"rows {n}", lambda: eval_target(pair, prompt, n))
    tried(f"eval_draft {n}", lambda: eval_draft(pair, [1, n], 1))
    tried(f"anchor {n}", lambda: eval_draft(pair, prompt, n))

def everything(pair):
    for call in (
        pair.reset, pair.chat_template, pair.special_tokens, lambda: measure_costs(pair),
        pair.probe_exact,
        lambda: pair.position, lambda: pair.cancel(False), lambda: pair.tokenize("\\ud800\\0 x"),
        lambda: eval_target(pair, []), lambda: eval_draft(pair, [], 1),
        lambda: eval_target(pair, [1] * 300), lambda: eval_draft(pair, [1] * 300, 1),
        lambda: pair.prompt([]), lambda: pair.prompt([1] * 300), lambda: pair.round_given([]),
        lambda: set_costs(pair, Costs(float("nan"), 1, 1, ())),
        lambda: set_costs(pair, Costs(1, 1, float("inf"), (float("nan"),))),
    ):
        tried("everything", call)

for files in ((target, draft), (target, None)):
    pair = NativePair(*files, n_ctx=128, threads=1)
    everything(pair)
    for n in numbers:
        on(pair, n)
    pair.close()
    pair.close()
    everything(pair)
    for n in numbers[:2]:
        on(pair, n)
for n in numbers:
    for option in ("n_ctx", "n_ubatch", "threads"):
        if option == "threads" and 64 < n < 2048:
            continue
        options = {"n_ctx": 64, option: n}
        made = tried(f"{option} {n}", lambda: NativePair(target, draft, **options))
        if made:
            made.close()
        if option != "threads":
            tried(f"estimate {option} {n}", lambda: estimate(target, draft, **options))
    tried(f"row_bytes {n}", lambda: row_bytes("q8_0", n))
    logits = np.zeros((2, 40), np.float32)
    for verify in Verify:
        tried(f"choose {n}", lambda: choose(logits, verify, Sampling(), seed=n))
        tried(f"position {n}", lambda: choose(logits, verify, Sampling(), seed=1, position=n))
for shape in ((0, 40), (1, 0), (0, 0)):
    for verify in Verify:
        empty = np.zeros(shape, np.float32)
        tried(f"choose {shape}", lambda: choose(empty, verify, Sampling(), seed=1))
    tried(f"quantize {shape}", lambda: quantize(empty, "q8_0"))
for name in ("", "q8_0\\0", "\\ud800", "no", "iq2_xxs", "i32"):
    tried(f"quantize {name!r}", lambda: quantize(np.zeros((1, 256), np.float32), name))
    tried(f"row_bytes {name!r}", lambda: row_bytes(name, 256))
    tried(f"device {name!r}", lambda: NativePair(target, n_ctx=64, device=name).close())
    tried(f"kv_type {name!r}", lambda: NativePair(target, n_ctx=64, kv_type=name).close())
with NativeVocabulary(target) as vocabulary:
    for n in numbers:
        tried(f"is_end {n}", lambda: vocabulary.is_end(n))
    tried("tokenize", lambda: vocabulary.tokenize("\\ud800\\0 <|im_end|>"))
tried("closed", lambda: vocabulary.is_end(1))
tried("closed", lambda: vocabulary.tokenize("x"))
for wrong in (Path("x\\0.gguf"), Path("."), Path("/dev/null")):
    tried(f"open {wrong}", lambda: NativePair(wrong))
    tried(f"open {wrong}", lambda: NativeVocabulary(wrong))
    tried(f"open {wrong}", lambda: estimate(target, wrong))
print("all of it", flush=True)
"""


def test_no_number_ends_the_process() -> None:
    pair = Library.of_user().open("demo")
    assert pair.draft
    numbers = ",".join(map(str, (*EDGES, *WRONG, 1024, 20_000)))
    done = subprocess.run(
        [sys.executable, "-c", CALLS, pair.target, pair.draft, numbers],
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    last = done.stdout.splitlines()[-1:]
    assert last == ["all of it"], f"{last}: {done.returncode} {done.stderr[-1500:]}"
