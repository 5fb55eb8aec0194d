"""The head of a GGUF file: its keys, read one by one and not kept.

`gguf.GGUFReader` keeps every token as several arrays: 13 seconds and 680 MB for the vocabulary
of Qwen3.5, only to look at a key or at the table behind it.
(Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md)
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_STRING, _ARRAY = 8, 9
_NUMBERS: Final = {  # the format's number of a type: as `struct` has it
    **{0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?"},
    **{10: "<Q", 11: "<q", 12: "<d"},
}
# What nothing comes near, so that a damaged number is no long way through a large file.
_LONGEST: Final = 1 << 27  # bytes of a text
_MOST: Final = 1 << 24  # texts in a list
_DEEPEST: Final = 4  # lists in lists
_FURTHEST: Final = 1 << 40  # bytes that are passed over

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Counts:
    tensors: int
    keys: int


def read_keys(path: Path, wanted: Collection[str]) -> dict[str, Value]:
    """Those of the keys `wanted` that hold one text or number; reads no further than it must.

    Raises `OSError`, and `ValueError` if it is no GGUF file, or one of another version.
    """
    found: dict[str, Value] = {}
    with path.open("rb") as stream:
        for _ in range(start(stream).keys):
            if len(found) == len(wanted):
                break
            key, value = read_text(stream), _value(stream)
            if key in wanted and value is not None:
                found[key] = value
    return found


def start(stream: IO[bytes]) -> Counts:
    """Reads the first bytes. Raises `ValueError`, as all functions here, if they are foreign."""
    try:
        magic, version, tensors, keys = struct.unpack("<4sIQQ", stream.read(24))
    except struct.error as error:
        raise ValueError("cut off") from error
    if magic != _MAGIC or version not in _VERSIONS or max(tensors, keys) > _MOST:
        raise ValueError("no GGUF file of a known version")
    return Counts(tensors, keys)


def skip_keys(stream: IO[bytes], count: int) -> None:
    for _ in range(count):
        read_text(stream)
        _value(stream)


def read_text(stream: IO[bytes]) -> str:
    length = read_number(stream, 8)
    data = stream.read(length) if length <= _LONGEST else b""
    if len(data) != length:
        raise ValueError("cut off or damaged")
    return data.decode("utf-8", "replace")


def read_number(stream: IO[bytes], width: int) -> int:
    data = stream.read(width)
    if len(data) != width:
        raise ValueError("cut off")
    return int.from_bytes(data, "little")


def _value(stream: IO[bytes]) -> Value | None:
    """The value of a key; None for an array, which is passed over."""
    kind = read_number(stream, 4)
    if kind == _STRING:
        return read_text(stream)
    if kind == _ARRAY:
        _skip_array(stream)
        return None
    if kind not in _NUMBERS:
        raise ValueError(f"a value of an unknown type, {kind}")
    form = _NUMBERS[kind]
    data = stream.read(struct.calcsize(form))
    if len(data) != struct.calcsize(form):
        raise ValueError("cut off")
    value: Value = struct.unpack(form, data)[0]
    return value


def _skip_array(stream: IO[bytes], depth: int = 1) -> None:
    kind, count = read_number(stream, 4), read_number(stream, 8)
    if kind in _NUMBERS:
        _skip(stream, struct.calcsize(_NUMBERS[kind]) * count)
    elif count > _MOST or depth > _DEEPEST:
        raise ValueError("a damaged list")
    elif kind == _STRING:
        for _ in range(count):
            _skip(stream, read_number(stream, 8))
    elif kind == _ARRAY:
        for _ in range(count):
            _skip_array(stream, depth + 1)
    else:
        raise ValueError(f"an array of an unknown type, {kind}")


def _skip(stream: IO[bytes], count: int) -> None:
    if count > _FURTHEST:
        raise ValueError("cut off or damaged")
    stream.seek(count, 1)
