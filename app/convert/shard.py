"""One safetensors file: its table of tensors, and reading rows of one.

The format: 8 bytes with the length of a JSON table, the table, then the data of all
tensors without gaps (https://huggingface.co/docs/safetensors). It is read here and not
by the `safetensors` package because that gives numpy no bfloat16.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from app.convert.weights import Array, Shape
from app.errors import CheckpointError

DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),  # its bits; numpy has no such number
}
_COMPARED: Final = 1 << 22  # numbers at a time
_TABLE_LIMIT: Final = 100_000_000  # bytes; the limit of the format's own library


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor as it lies in a shard; `dtype` in the words of safetensors."""

    name: str
    dtype: str
    shape: Shape
    file: Path
    offset: int  # of its first byte in the file
    bytes: int

    def rows(self, start: int, stop: int) -> Array:
        """Rows of the first dimension as stored: BF16 comes as uint16 of the same bits."""
        kind = DTYPES[self.dtype]
        row = prod(self.shape[1:])
        try:
            with self.file.open("rb") as stream:
                stream.seek(self.offset + start * row * kind.itemsize)
                values: Array = np.fromfile(stream, kind, (stop - start) * row)
        except OSError as error:
            raise _broken(self.file, f"it cannot be read: {error.strerror or error}") from error
        if values.size != (stop - start) * row:
            raise _broken(self.file, f"it ends inside the tensor `{self.name}`")
        return values.reshape(stop - start, *self.shape[1:])

    def same_numbers(self, other: StoredTensor) -> bool:
        """Whether both hold the same bytes in the same shape."""
        if (self.dtype, self.shape) != (other.dtype, other.shape) or self.dtype not in DTYPES:
            return False
        step = max(1, _COMPARED // max(1, prod(self.shape[1:])))
        return all(
            self.rows(at, stop).tobytes() == other.rows(at, stop).tobytes()
            for at in range(0, self.shape[0], step)
            for stop in (min(at + step, self.shape[0]),)
        )


def read_shard(file: Path) -> dict[str, StoredTensor]:
    """All tensors of `file` by name, sorted by name.

    Raises `CheckpointError` if the file is not whole to the byte.
    """
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if size < 8 or length > min(size - 8, _TABLE_LIMIT):
                raise _broken(file, "its table of tensors is cut off")
            table = json.loads(stream.read(length))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"`{file}` is missing.", remedy="Download the missing file."
        ) from error
    except OSError as error:
        raise _broken(file, f"it cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise _broken(file, f"its table of tensors is damaged: {error}") from error
    if not isinstance(table, dict):
        raise _broken(file, "its table of tensors is damaged")
    table.pop("__metadata__", None)
    tensors = {name: _entry(file, name, table[name], 8 + length) for name in sorted(table)}
    _check_layout(file, list(tensors.values()), 8 + length, size)
    return tensors


def _entry(file: Path, name: str, entry: Any, data: int) -> StoredTensor:
    try:
        dtype, (start, stop), shape = str(entry["dtype"]), entry["data_offsets"], entry["shape"]
        if not all(type(n) is int and n >= 0 for n in (start, stop, *shape)):
            raise ValueError("no number of bytes or rows")
        shape = tuple(shape)
        tensor = StoredTensor(name, dtype, shape, file, data + start, stop - start)
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(file, f"the entry of the tensor `{name}` is damaged") from error
    kind = DTYPES.get(dtype)
    if kind and tensor.bytes != prod(shape) * kind.itemsize:
        raise _broken(file, f"the tensor `{name}` does not have the bytes of its shape {shape}")
    return tensor


def _check_layout(file: Path, tensors: list[StoredTensor], data: int, size: int) -> None:
    at = data
    for tensor in sorted(tensors, key=lambda t: (t.offset, t.bytes)):
        if tensor.offset != at or tensor.bytes < 0:
            raise _broken(file, f"the tensor `{tensor.name}` is not where its neighbour ends")
        at += tensor.bytes
    if at != size:
        raise _broken(file, f"it has {size:,} bytes where its table tells {at:,}")


def _broken(file: Path, reason: str) -> CheckpointError:
    return CheckpointError(f"`{file}` is broken: {reason}.", remedy="Download this file again.")
