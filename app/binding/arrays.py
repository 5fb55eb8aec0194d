"""Python's numbers as C's, for a call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_float, c_int32
from typing import TYPE_CHECKING, Any, Final

from app.binding.sampling import Sampling, Verify
from app.binding.structs import Sampling as RawSampling
from app.errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERIFY: Final = {Verify.GREEDY: 0, Verify.HOST_SAMPLE: 1, Verify.GPU_SAMPLE: 2}


def ints(values: Sequence[int]) -> Any:
    """Token ids as C's. Raises OptionError for one beyond 32 bits, which ctypes would wrap."""
    for value in values:
        if not -(2**31) <= value < 2**31:
            raise OptionError(f"{value} is no token.", remedy="Use ids of the vocabulary.")
    return (c_int32 * len(values))(*values)


def floats(array: NDArray[np.float32]) -> Any:
    return array.ctypes.data_as(POINTER(c_float))


def raw_sampling(verify: Verify, sampling: Sampling, seed: int) -> RawSampling:
    return RawSampling(
        size=ctypes.sizeof(RawSampling),
        verify=_VERIFY[verify],
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
        seed=seed,
    )


def tokens_of(text: str, tokenize: Callable[..., int]) -> list[int]:
    """What `tokenize` gives for (bytes, their count, buffer, its capacity)."""
    raw = text.encode("utf-8")
    capacity = len(raw) + 8  # a token has at least a byte
    buffer = (c_int32 * capacity)()
    n = tokenize(raw, len(raw), buffer, capacity)
    if not 0 <= n <= capacity:
        raise OptionError("The text is too long to tokenise.", remedy="Shorten it.")
    return list(buffer[:n])
