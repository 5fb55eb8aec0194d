"""Quantising while converting: the bytes of `llama-quantize`, our recipe, and what stops it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFReader

from app.binding import quantize
from app.convert import (
    Converted,
    Recipe,
    WeightType,
    convert_draft,
    convert_pair,
    convert_target,
)
from app.errors import CheckpointError, OptionError, OutputError
from app.jobs import CancelToken, JobCancelled
from tests.convert import tiny
from tests.convert.cases import DEMO
from tests.convert.test_checkpoint import with_tensors

ROOT = Path(__file__).resolve().parents[2]
QUANTISED = [kind for kind in WeightType if kind.quantised]
MANY_LAYERS = tiny.Target(  # as many as the real one, where the mix shows
    layers=32, hidden=256, ff=256, heads=2, kv_heads=1, head_dim=64, linear_dim=64, value_heads=4
)

Make = Callable[[Path, WeightType, Recipe], Converted]


def _target(source: Path) -> Make:
    return lambda output, kind, recipe: convert_target(source, output, kind, recipe=recipe)


def _draft(source: Path, target: Path) -> Make:
    return lambda output, kind, recipe: convert_draft(source, target, output, kind, recipe=recipe)


@pytest.fixture(scope="module")
def makes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Make]:
    root = tmp_path_factory.mktemp("sources")
    return {
        "demo target": _target(DEMO / "target"),
        "demo draft": _draft(DEMO / "draft", DEMO / "target"),
        "32 layers": _target(tiny.write_target(root / "many", MANY_LAYERS)),
        # Rows of 64 numbers are no whole blocks of 256: other types stand in.
        "odd rows, untied": _target(tiny.write_target(root / "odd", tied=False)),
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("demo target", kind) for kind in QUANTISED),
        ("demo draft", WeightType.Q4_K_M),
        ("demo draft", WeightType.Q8_0),
        ("32 layers", WeightType.Q4_K_M),
        ("odd rows, untied", WeightType.Q4_K_M),
        ("odd rows, untied", WeightType.Q6_K),
    ],
)
def test_the_file_is_that_of_llama_quantize(
    makes: dict[str, Make], name: str, kind: WeightType, tools: Path, tmp_path: Path
) -> None:
    make = makes[name]
    full = make(tmp_path / "bf16.gguf", WeightType.BF16, Recipe.LLAMA)
    ours = make(tmp_path / "ours.gguf", kind, Recipe.LLAMA)
    theirs = tmp_path / "theirs.gguf"
    command = [tools / "llama-quantize", full.path, theirs, kind.value.upper(), "2"]
    subprocess.run([*map(str, command)], check=True, capture_output=True)
    assert _outline(ours.path) == _outline(theirs)
    assert ours.path.read_bytes() == theirs.read_bytes()


def _outline(path: Path) -> list[tuple[str, Any]]:
    return [(tensor.name, tensor.tensor_type) for tensor in GGUFReader(path).tensors]


def test_our_recipe_gives_the_sensitive_ones_one_step_more(tmp_path: Path) -> None:
    kinds = []
    for recipe in Recipe:
        done = convert_target(DEMO / "target", tmp_path / recipe, WeightType.Q4_K_M, recipe=recipe)
        assert done.recipe is recipe
        kinds.append(dict(_outline(done.path)))
        assert GGUFReader(done.path).fields["slipstream.recipe"].contents() == recipe.value
        errors = {error.name: error for error in done.errors}
        assert set(errors) < set(kinds[-1])
        assert 0.01 < errors["blk.0.ffn_gate.weight"].error < 0.2
    raised = {name for name in kinds[0] if kinds[0][name] != kinds[1][name]}
    assert {f"blk.{i}.ssm_out.weight" for i in (0, 1, 2, 4, 5, 6)} <= raised


def test_errors_are_what_dequantising_shows(tmp_path: Path) -> None:
    full = convert_target(DEMO / "target", tmp_path / "f", WeightType.F32)
    done = convert_target(DEMO / "target", tmp_path / "q", WeightType.Q8_0)
    from gguf.quants import dequantize

    exact = {tensor.name: tensor.data for tensor in GGUFReader(full.path).tensors}
    for tensor in GGUFReader(done.path).tensors[:20]:
        told = {error.name: error.error for error in done.errors}.get(tensor.name, 0.0)
        values = exact[tensor.name]
        lost = dequantize(tensor.data, tensor.tensor_type).reshape(values.shape) - values
        relative = np.sqrt((lost.astype(float) ** 2).sum() / (values.astype(float) ** 2).sum())
        assert told == pytest.approx(relative, rel=1e-3), tensor.name


@pytest.mark.parametrize("kind", [WeightType.BF16, WeightType.Q8_0, WeightType.Q4_K_M])
@pytest.mark.parametrize("bits", [0x7FC0, 0xFF80], ids=["nan", "infinity"])
def test_numbers_that_are_not_finite(
    target: Path, tmp_path: Path, kind: WeightType, bits: int
) -> None:
    name = "model.language_model.layers.1.mlp.gate_proj.weight"
    with_tensors(target, lambda t: t[name][1].__setitem__((5, 7), bits))
    with pytest.raises(CheckpointError, match="not finite") as caught:
        convert_target(target, tmp_path / "out" / "x.gguf", kind)
    assert name in caught.value.message
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("kind", [WeightType.F16, WeightType.Q8_0, WeightType.Q4_K_M])
def test_numbers_that_are_too_large_for_the_type(
    target: Path, tmp_path: Path, kind: WeightType
) -> None:
    name = "model.language_model.layers.1.mlp.gate_proj.weight"
    with_tensors(target, lambda t: t[name][1].__setitem__((5, 7), 0x7F00))  # 1.7e38
    with pytest.raises(OptionError, match="too large") as caught:
        convert_target(target, tmp_path / "out" / "x.gguf", kind)
    assert name in caught.value.message
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("kind", ["iq1_m", "iq2_s", "iq3_xxs", "iq3_s", "iq4_nl", "mxfp4", "tq1_0"])
def test_types_that_no_model_is_stored_in(kind: str) -> None:
    """ggml ends the process on numbers that some of them have no place for, or never ends."""
    values = np.full((1, 512), 1e20, np.float32)
    with pytest.raises(OptionError, match=kind):
        quantize(values, kind)


class TestApart:
    """The child process: its progress, its end, and that of its parent."""

    def test_progress_and_result(self, target: Path, draft: Path, tmp_path: Path) -> None:
        seen: list[tuple[int, int]] = []
        done = convert_pair(
            target, draft, tmp_path, WeightType.Q8_0, progress=lambda d, t, _: seen.append((d, t))
        )
        assert done.draft
        assert seen[-1][0] == seen[-1][1]
        assert [step for step, _ in seen] == sorted(step for step, _ in seen)
        assert {file.name for file in tmp_path.glob("*.gguf*")} == {
            "target-q8_0.gguf",
            "draft-q8_0.gguf",
        }

    def test_target_alone(self, target: Path, tmp_path: Path) -> None:
        done = convert_pair(target, None, tmp_path / "out", WeightType.Q4_K_M)
        assert done.draft is None
        assert [file.name for file in (tmp_path / "out").iterdir()] == ["target-q4_k_m.gguf"]

    def test_cancelled_at_once(self, large: Path, tmp_path: Path) -> None:
        token, asked = CancelToken(), []

        def progress(done: int, total: int, name: str) -> None:
            asked.append(time.monotonic())
            token.cancel()

        with pytest.raises(JobCancelled):
            convert_target(
                large, tmp_path / "out" / "x", WeightType.Q4_K_M, progress=progress, cancelled=token
            )
        assert time.monotonic() - asked[0] < 5  # two seconds, and a busy machine
        assert list((tmp_path / "out").iterdir()) == []

    def test_a_child_that_dies_is_an_error(self, large: Path, tmp_path: Path) -> None:
        def progress(done: int, total: int, name: str) -> None:
            for child in _children():
                os.kill(child, signal.SIGKILL)

        with pytest.raises(OutputError, match="exit status -9"):
            convert_target(large, tmp_path / "out" / "x", WeightType.Q4_K_M, progress=progress)
        assert list((tmp_path / "out").iterdir()) == []

    def test_a_parent_that_dies_takes_the_child_along(self, large: Path, tmp_path: Path) -> None:
        script = (
            "import os, signal, sys; from pathlib import Path\n"
            "from app.convert import WeightType, convert_target\n"
            "def stop(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
            "convert_target(Path(sys.argv[1]), Path(sys.argv[2]), WeightType.Q4_K_M, progress=stop)"
        )
        output = tmp_path / "out" / "x"
        subprocess.run([sys.executable, "-c", script, str(large), str(output)], cwd=ROOT)
        ended = time.monotonic() + 20
        while list(output.parent.iterdir()) and time.monotonic() < ended:
            time.sleep(0.05)  # it notices at its next step, and cleans up
        assert list(output.parent.iterdir()) == []

    def test_from_a_thread(self, target: Path, tmp_path: Path) -> None:
        thread = threading.Thread(target=convert_target, args=(target, tmp_path / "x", "q8_0"))
        thread.start()
        thread.join()
        assert (tmp_path / "x").is_file()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some seconds of work."""
    shape = tiny.Target(hidden=1024, ff=4096, vocab=16384, key_heads=4, value_heads=8)
    return tiny.write_target(tmp_path_factory.mktemp("large"), shape)


def _children() -> list[int]:
    me = os.getpid()
    text = Path(f"/proc/{me}/task/{me}/children").read_text()
    return [int(pid) for pid in text.split() if b"spawn_main" in _command(int(pid))]


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
