"""``slipstream convert``: the command around the converter, which has tests of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import app.convert
from app.cli import console
from app.cli.convert import TYPES
from app.convert import Converted, ConvertedPair, OnBytes, WeightType
from app.errors import CheckpointError
from tests.cli.support import Slipstream

ARGUMENTS = ("convert", "--target", "t", "--draft", "d", "--out", "o")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    calls: list[tuple[object, ...]] = []

    def convert_pair(
        target: Path, draft: Path, out: Path, kind: WeightType, *, progress: OnBytes
    ) -> ConvertedPair:
        calls.append((target, draft, out, kind))
        for done in range(100):
            progress(done, 100, "blk.0")
        return ConvertedPair(
            Converted(out / "target.gguf", 5_000_000, "ab", 9, 0.5),
            Converted(out / "draft.gguf", 2_000_000, "cd", 4, 0.25),
        )

    monkeypatch.setattr(app.convert, "convert_pair", convert_pair)
    return calls


def test_json_fields(
    slipstream: Slipstream, calls: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "LOG_SECONDS", 0.0)
    run = slipstream(*ARGUMENTS, "--type", "BF16", "--json")
    assert run.status == 0
    assert calls == [(Path("t"), Path("d"), Path("o"), WeightType.BF16)]
    assert list(run.json) == ["target", "draft", "seconds"]
    assert run.json["target"] == {
        "path": str(Path("o/target.gguf")),
        "bytes": 5_000_000,
        "sha256": "ab",
        "tensors": 9,
        "seconds": 0.5,
    }
    assert run.err.splitlines()[5] == "Converting:   5%"


def test_lines_for_people(slipstream: Slipstream, calls: list[tuple[object, ...]]) -> None:
    run = slipstream(*ARGUMENTS)
    assert calls[0][3] is WeightType.Q8_0
    assert run.out.splitlines() == ["o/target.gguf  5.0 MB", "o/draft.gguf  2.0 MB"]


def test_types_are_the_converters() -> None:
    assert set(TYPES) == {kind.value for kind in WeightType}


@pytest.mark.parametrize("arguments", [ARGUMENTS[:5], (*ARGUMENTS, "--type", "q1")])
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
