"""Weights stored in ggml's types, by the library's quantiser."""

from __future__ import annotations

import ctypes
from ctypes import byref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.binding.arrays import floats, int64, text
from app.binding.library import library
from app.binding.status import check
from app.binding.structs import Error
from app.binding.structs import Rounding as RawRounding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Rounding:
    """`slip_rounding` of the header: sums of squares, of what was lost and of the numbers."""

    infinite: int  # numbers that are not finite once stored
    error: float
    power: float


def row_bytes(kind: str, width: int) -> int | None:
    """Bytes of a row of `width` numbers as ggml's type `kind`; None if it is no whole blocks."""
    found = int(library().slip_row_bytes(text(kind, "a type"), int64(width, "width")))
    return found if found > 0 else None


def quantize(values: NDArray[np.float32], kind: str) -> tuple[NDArray[np.uint8], Rounding]:
    """Rows [rows, width] as ggml's type `kind` ("q4_K"): [rows, bytes of a row], and the loss.

    The bytes are those of llama.cpp's quantiser without an importance matrix. Any number of
    threads may do this at the same time. Raises OptionError for a type that cannot be made.
    """
    import numpy as np  # no answer needs it, and it takes a tenth of a second

    values = np.ascontiguousarray(values, dtype=np.float32)
    rows, width = values.shape
    out = np.empty((rows, row_bytes(kind, width) or 0), dtype=np.uint8)
    raw, error = RawRounding(size=ctypes.sizeof(RawRounding)), Error()
    status = library().slip_quantize(
        text(kind, "a type"), floats(values), rows, width, out.ctypes.data, byref(raw), byref(error)
    )
    check(status, error)
    return out, Rounding(raw.n_infinite, raw.error, raw.power)
