"""The table of tensors in a GGUF file, read without its keys.

`gguf.GGUFReader` keeps every token as several arrays: 13 seconds and 680 MB for the vocabulary
of Qwen3.5, only to look at the table behind it.
(Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from gguf.constants import GGUF_MAGIC, GGMLQuantizationType, GGUFValueType

from app.convert.weights import Shape

ALIGNMENT: Final = 32
_WIDTHS: Final = {
    GGUFValueType.UINT8: 1,
    GGUFValueType.INT8: 1,
    GGUFValueType.BOOL: 1,
    GGUFValueType.UINT16: 2,
    GGUFValueType.INT16: 2,
    GGUFValueType.UINT32: 4,
    GGUFValueType.INT32: 4,
    GGUFValueType.FLOAT32: 4,
    GGUFValueType.UINT64: 8,
    GGUFValueType.INT64: 8,
    GGUFValueType.FLOAT64: 8,
}


@dataclass(frozen=True, slots=True)
class TableEntry:
    name: str
    shape: Shape
    kind: GGMLQuantizationType
    offset: int  # in the file


def read_table(path: Path) -> list[TableEntry]:
    """The tensors of `path` in order. Raises `ValueError` if it is not a GGUF file."""
    with path.open("rb") as stream:
        try:
            magic, _, tensors, keys = struct.unpack("<IIQQ", stream.read(24))
            if magic != GGUF_MAGIC:
                raise ValueError("no GGUF magic")
            for _ in range(keys):
                _text(stream)
                _skip_value(stream, GGUFValueType(_number(stream, 4)))
            entries = [_entry(stream) for _ in range(tensors)]
        except (struct.error, UnicodeDecodeError) as error:
            raise ValueError("cut off or damaged") from error
        start = stream.tell() + -stream.tell() % ALIGNMENT
    return [TableEntry(e.name, e.shape, e.kind, start + e.offset) for e in entries]


def _entry(stream: IO[bytes]) -> TableEntry:
    name = _text(stream)
    # ggml counts dimensions from the one whose numbers lie side by side.
    shape = tuple(_number(stream, 8) for _ in range(_number(stream, 4)))[::-1]
    kind = GGMLQuantizationType(_number(stream, 4))
    return TableEntry(name, shape, kind, _number(stream, 8))


def _skip_value(stream: IO[bytes], kind: GGUFValueType) -> None:
    if kind == GGUFValueType.STRING:
        stream.seek(_number(stream, 8), 1)
    elif kind == GGUFValueType.ARRAY:
        kind, count = GGUFValueType(_number(stream, 4)), _number(stream, 8)
        if kind in _WIDTHS:
            stream.seek(_WIDTHS[kind] * count, 1)
        else:
            for _ in range(count):
                _skip_value(stream, kind)
    else:
        stream.seek(_WIDTHS[kind], 1)


def _text(stream: IO[bytes]) -> str:
    return stream.read(_number(stream, 8)).decode()


def _number(stream: IO[bytes], width: int) -> int:
    data = stream.read(width)
    if len(data) != width:
        raise ValueError("cut off")
    return int.from_bytes(data, "little")
