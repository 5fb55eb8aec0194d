"""From a stored tensor to the bytes of a GGUF tensor, a piece at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from math import prod
from typing import Final

import numpy as np
from gguf.constants import GGMLQuantizationType
from gguf.quants import quantize as quantize_in_numpy

from app import binding
from app.binding import Rounding
from app.convert.outline import Planned
from app.convert.weights import Array, widen
from app.errors import CheckpointError, OptionError

_PIECE: Final = 1 << 19  # numbers; about 2 MiB as float32, so that temporaries stay small
_AHEAD: Final = 2  # pieces that a thread may have finished before they are written

_NUMPY: Final = {GGMLQuantizationType.F16: "F16", GGMLQuantizationType.BF16: "BF16"}


@dataclass(slots=True)
class Loss:
    """What storing took away of a tensor so far: sums of squares."""

    error: float = 0.0
    power: float = 0.0

    @property
    def relative(self) -> float:
        """Root of the mean square of what was lost, over that of the numbers themselves."""
        return float(np.sqrt(self.error / self.power)) if self.power else 0.0


@dataclass(slots=True)
class Encoder:
    """Encodes tensors on `threads` threads; `pool` is shut down by whoever made it."""

    threads: int
    pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self.pool = ThreadPoolExecutor(self.threads, thread_name_prefix="convert")

    def close(self) -> None:
        self.pool.shutdown(cancel_futures=True)

    def encoded(self, tensor: Planned, loss: Loss) -> Iterator[Array]:
        """The bytes of `tensor` in order; what they lost is added to `loss`.

        Holds a few pieces, and where rows change their order the stored tensor twice. Raises
        `CheckpointError` if the source cannot be read or has a number that is not finite,
        `OptionError` if a number does not fit the type.
        """
        for data, rounding in self._in_order(_jobs(tensor)):
            if rounding.infinite:
                raise OptionError(
                    f"The tensor `{tensor.source.name}` in `{tensor.source.file}` has numbers too "
                    f"large for {tensor.kind.name}.",
                    remedy="Convert to BF16 instead.",
                )
            loss.error += rounding.error
            loss.power += rounding.power
            yield data

    def _in_order(self, jobs: Iterable[_Job]) -> Iterator[tuple[Array, Rounding]]:
        running: deque[Future[tuple[Array, Rounding]]] = deque()
        try:
            for job in jobs:
                running.append(self.pool.submit(job))
                if len(running) >= self.threads * _AHEAD:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


_Job = Callable[[], tuple[Array, Rounding]]


def _jobs(tensor: Planned) -> Iterator[_Job]:
    count = tensor.shape[0]
    step = max(1, _PIECE // max(1, prod(tensor.shape[1:])))
    whole = tensor.arrange(tensor.source.rows(0, count)) if tensor.arrange else None
    for at in range(0, count, step):
        yield _piece(tensor, whole, at, min(at + step, count))


def _piece(tensor: Planned, whole: Array | None, start: int, stop: int) -> _Job:
    def job() -> tuple[Array, Rounding]:
        stored = tensor.source.rows(start, stop) if whole is None else whole[start:stop]
        values = widen(stored, tensor.source.dtype)
        if tensor.compute:
            values = tensor.compute(values)
        if not np.isfinite(values).all():
            raise CheckpointError(
                f"The tensor `{tensor.source.name}` in `{tensor.source.file}` has numbers that "
                "are not finite.",
                remedy="Download this file again; if it stays so, the model is damaged at its "
                "source: choose another one.",
            )
        if tensor.kind.name == tensor.source.dtype and not tensor.compute:
            return np.ascontiguousarray(stored), Rounding(0, 0.0, 0.0)  # as it is stored
        return _store(values, tensor.kind)

    return job


def _store(values: Array, kind: GGMLQuantizationType) -> tuple[Array, Rounding]:
    """`values` (whole rows of float32) in the bytes of `kind`, and what that lost."""
    if kind is GGMLQuantizationType.F32:
        return np.ascontiguousarray(values), Rounding(0, 0.0, 0.0)
    if kind not in _NUMPY:
        return binding.quantize(values, kind.name.replace("Q", "q", 1))
    with np.errstate(over="ignore"):  # counted below
        data = np.ascontiguousarray(quantize_in_numpy(values, kind))
    back = widen(data.view(np.uint16) if kind is GGMLQuantizationType.BF16 else data, _NUMPY[kind])
    infinite = int(back.size - np.count_nonzero(np.isfinite(back)))
    if infinite:
        return data, Rounding(infinite, 0.0, 0.0)
    return data, Rounding(0, _squares(back.reshape(values.shape) - values), _squares(values))


def _squares(values: Array) -> float:
    flat = values.ravel().astype(np.float64)
    return float(np.dot(flat, flat))
