"""A few hundred damaged models end as answers or errors, and so does each kind found before.

`dev.py fuzz` tries 20,000.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from app.binding import NativePair
from app.errors import ModelFileError
from tests.conftest import ROOT
from tests.engine import fuzz
from tests.engine.damage import KINDS, Image, array, damaged

TIMES = 500
INT32: Final = 5  # of GGUF's types of values
F16: Final = 1  # of ggml's types of tensors

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="counts and bounds processes as Linux does"
)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    fuzz.make_pairs(folder)
    return folder


@pytest.mark.timeout(1800)  # beside whatever else runs
def test_no_damage_ends_the_process(pairs: Path) -> None:
    done = list(fuzz.tries(pairs, 0, TIMES, fuzz.WORKERS))
    assert not [str(made) for made in done if made.fault]
    assert sorted(made.seed for made in done) == list(range(TIMES))
    # Or nothing is shown: each kind was tried, some were harmless, and most were not.
    assert {kind for made in done for kind in made.kinds} == set(KINDS)
    outcomes = {made.outcome for made in done}
    assert outcomes >= {"answered", "ModelFileError", "PairMismatchError", "NonFiniteError"}
    assert all(made.outcome == "answered" for made in done if made.kinds == ("whole",))


def test_a_number_is_one_try_and_its_files_are_kept(pairs: Path, tmp_path: Path) -> None:
    assert [made.seed for made in fuzz.tries(pairs, 9, 1, 2)] == [9]
    assert [made.seed for made in fuzz.tries(pairs, 9, 2, 2, keep=tmp_path)] == [9, 10]
    images = [
        (Image.read(target), Image.read(target.with_name(f"draft-{target.name[7:]}")))
        for target in sorted(pairs.glob("target-*.gguf"))
    ]
    assert (tmp_path / "model.gguf").read_bytes() == damaged(10, images).target


@pytest.mark.parametrize("sections", [(33, 0, 0, 0), (8, 8, 8, 9), (0, 0, 0, 8), (0, 0, 0, 0)])
def test_sections_take_some_of_a_heads_dimensions(
    pairs: Path, tmp_path: Path, sections: tuple[int, ...]
) -> None:
    image = Image.read(pairs / "target-f32.gguf")
    image.set(
        "qwen35.rope.dimension_sections", array(INT32, [struct.pack("<i", n) for n in sections])
    )
    (tmp_path / "model.gguf").write_bytes(image.written())
    with pytest.raises(ModelFileError, match="dimension_sections"):
        NativePair(tmp_path / "model.gguf", None, n_ctx=64)


PROMPT = """
import sys
from pathlib import Path
from app.binding import NativePair
from app.errors import NonFiniteError
pair = NativePair(Path(sys.argv[1]), None, n_ctx=64, threads=1)
try:
    pair.prompt(range(40), drafting=False)
except NonFiniteError:
    pass
pair.close()
print("closed")
"""


def test_a_matrix_of_another_type_writes_into_no_others_memory(pairs: Path, tmp_path: Path) -> None:
    """With AMX the rows of an F16 product were converted into work space that was not there."""
    image = Image.read(pairs / "target-f32.gguf")
    image.tensors = [
        replace(tensor, kind=F16) if tensor.name == b"blk.3.attn_k.weight" else tensor
        for tensor in image.tensors
    ]
    image.lay_out()
    (tmp_path / "model.gguf").write_bytes(image.written())
    done = subprocess.run(
        [sys.executable, "-c", PROMPT, str(tmp_path / "model.gguf")],
        cwd=ROOT,
        # glibc looks at what lies around a piece of memory when it is given back.
        env={**os.environ, "LD_PRELOAD": "libc_malloc_debug.so.0", "MALLOC_CHECK_": "3"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "closed\n"), done.stderr[-2000:]
