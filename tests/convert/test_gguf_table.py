"""The quick look at a GGUF file sees what the reader of the `gguf` package sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from gguf import GGUFReader

from app.convert import WeightType, convert_target
from app.convert.gguf_table import read_table


def test_equals_the_reader(target: Path, tmp_path: Path) -> None:
    output = convert_target(target, tmp_path / "x.gguf", WeightType.BF16).path
    assert [(e.name, list(e.shape[::-1]), e.kind, e.offset) for e in read_table(output)] == [
        (t.name, t.shape.tolist(), t.tensor_type, t.data_offset) for t in GGUFReader(output).tensors
    ]


@pytest.mark.parametrize("length", [0, 3, 24, 30, 500, 5_000, 9_000])
def test_cut_off(target: Path, tmp_path: Path, length: int) -> None:
    output = convert_target(target, tmp_path / "x.gguf", WeightType.BF16).path
    data = output.read_bytes()
    output.write_bytes(data[:length])
    with pytest.raises(ValueError, match="cut off"):
        read_table(output)


def test_another_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"GGML" + bytes(100))
    with pytest.raises(ValueError, match="no GGUF file"):
        read_table(tmp_path / "x")
