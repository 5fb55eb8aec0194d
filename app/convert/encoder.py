"""From a stored tensor to the bytes of a GGUF tensor, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

from app.convert.outline import Planned
from app.convert.weights import Array, encode, widen
from app.errors import OptionError

_PIECE: Final = 1 << 19  # numbers; about 2 MiB as float32, so that temporaries stay small


def encoded(tensor: Planned) -> Iterator[Array]:
    """The bytes of `tensor` in order.

    Holds one piece, or where rows change their order the stored tensor twice.
    Raises `CheckpointError` if the source cannot be read, `OptionError` if a number does
    not fit the type.
    """
    for rows in _pieces(tensor):
        values = widen(rows, tensor.source.dtype)
        if tensor.compute:
            values = tensor.compute(values)
        try:
            yield encode(values, tensor.kind)
        except FloatingPointError as error:
            raise OptionError(
                f"The tensor `{tensor.source.name}` has numbers too large for {tensor.kind.name}.",
                remedy="Convert to BF16 instead.",
            ) from error


def _pieces(tensor: Planned) -> Iterator[Array]:
    count = tensor.shape[0]
    step = max(1, _PIECE // max(1, prod(tensor.shape[1:])))
    if tensor.arrange:
        whole = tensor.arrange(tensor.source.rows(0, count))
        yield from (whole[at : at + step] for at in range(0, count, step))
    else:
        for at in range(0, count, step):
            yield tensor.source.rows(at, min(at + step, count))
