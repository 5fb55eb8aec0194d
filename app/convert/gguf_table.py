"""The table of tensors in a GGUF file, read without its keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from gguf.constants import GGMLQuantizationType

from app.convert.weights import Shape
from app.gguf_header import read_number, read_text, skip_keys, start

ALIGNMENT: Final = 32
_DIMENSIONS: Final = 4  # of ggml


@dataclass(frozen=True, slots=True)
class TableEntry:
    name: str
    shape: Shape
    kind: GGMLQuantizationType
    offset: int  # in the file


def read_table(path: Path) -> list[TableEntry]:
    """The tensors of `path` in order. Raises `ValueError` if it is not a GGUF file."""
    with path.open("rb") as stream:
        counts = start(stream)
        skip_keys(stream, counts.keys)
        entries = [_entry(stream) for _ in range(counts.tensors)]
        data = stream.tell() + -stream.tell() % ALIGNMENT
    return [TableEntry(e.name, e.shape, e.kind, data + e.offset) for e in entries]


def _entry(stream: IO[bytes]) -> TableEntry:
    name = read_text(stream)
    # ggml counts dimensions from the one whose numbers lie side by side.
    dimensions = read_number(stream, 4)
    if dimensions > _DIMENSIONS:
        raise ValueError(f"a tensor of {dimensions} dimensions")
    shape = tuple(read_number(stream, 8) for _ in range(dimensions))[::-1]
    kind = GGMLQuantizationType(read_number(stream, 4))
    return TableEntry(name, shape, kind, read_number(stream, 8))
