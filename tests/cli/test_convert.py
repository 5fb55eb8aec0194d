"""``slipstream convert``: the command around the converter, which has tests of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import app.convert
from app.cli import console
from app.cli.convert import RECIPES, TYPES
from app.convert import (
    Converted,
    ConvertedPair,
    OnBytes,
    Recipe,
    TensorError,
    WeightType,
)
from app.errors import CheckpointError
from tests.cli.support import Slipstream

ARGUMENTS = ("convert", "--target", "t", "--draft", "d", "--out", "o")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    calls: list[tuple[object, ...]] = []

    def convert_pair(
        target: Path,
        draft: Path | None,
        out: Path,
        kind: WeightType,
        *,
        recipe: Recipe | None,
        draft_type: WeightType | None,
        progress: OnBytes,
    ) -> ConvertedPair:
        calls.append((target, draft, out, kind, recipe, draft_type))
        for done in range(100):
            progress(done, 100, "blk.0")
        errors = (TensorError("a.weight", "Q4_K", 0.02), TensorError("b.weight", "Q4_K", 0.07))
        how = WeightType.Q4_K_M, Recipe.LLAMA
        return ConvertedPair(
            Converted(out / "target.gguf", 5_000_000, "ab", 9, 0.5, *how, errors),
            Converted(out / "draft.gguf", 2_000_000, "cd", 4, 0.25, *how, ()) if draft else None,
        )

    monkeypatch.setattr(app.convert, "convert_pair", convert_pair)
    return calls


def test_json_fields(
    slipstream: Slipstream, calls: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "LOG_SECONDS", 0.0)
    options = ("--type", "Q5_K_M", "--draft-type", "bf16", "--recipe", "llama")
    run = slipstream(*ARGUMENTS, *options, "--json")
    assert run.status == 0
    how = WeightType.Q5_K_M, Recipe.LLAMA, WeightType.BF16
    assert calls == [(Path("t"), Path("d"), Path("o"), *how)]
    assert list(run.json) == ["target", "draft", "seconds"]
    assert run.json["target"] == {
        "path": str(Path("o/target.gguf")),
        "bytes": 5_000_000,
        "sha256": "ab",
        "tensors": 9,
        "seconds": 0.5,
        "weight_type": "q4_k_m",
        "recipe": "llama",
        "errors": [
            {"name": "a.weight", "kind": "Q4_K", "error": 0.02},
            {"name": "b.weight", "kind": "Q4_K", "error": 0.07},
        ],
    }
    assert run.err.splitlines()[5] == "Converting:   5%"


def test_lines_for_people(slipstream: Slipstream, calls: list[tuple[object, ...]]) -> None:
    run = slipstream(*ARGUMENTS)
    assert calls[0][3:] == (WeightType.Q4_K_M, None, None)
    assert run.out.splitlines() == [
        "o/target.gguf  5.0 MB, recipe llama, largest error 7.0% in b.weight",
        "o/draft.gguf  2.0 MB, recipe llama",
    ]


def test_a_target_alone(slipstream: Slipstream, calls: list[tuple[object, ...]]) -> None:
    run = slipstream("convert", "--target", "t", "--out", "o", "--json")
    assert calls[0][1] is None
    assert run.json["draft"] is None


def test_types_are_the_converters() -> None:
    assert tuple(WeightType) == TYPES
    assert tuple(Recipe) == RECIPES


@pytest.mark.parametrize("arguments", [ARGUMENTS[:3], (*ARGUMENTS, "--type", "q1")])
def test_usage_errors(slipstream: Slipstream, arguments: tuple[str, ...]) -> None:
    run = slipstream(*arguments, "--json")
    assert (run.status, run.out) == (2, "")


def test_a_folder_that_is_no_checkpoint(slipstream: Slipstream, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = slipstream(
        *("convert", "--target", str(tmp_path), "--draft", str(tmp_path)),
        *("--out", str(out), "--json"),
    )
    assert (run.status, run.json["error"]["kind"]) == (1, CheckpointError.__name__)
    assert not out.exists()
