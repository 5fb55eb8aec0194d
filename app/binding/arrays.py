"""Python's numbers as C's, for a call."""

from __future__ import annotations

import ctypes
import operator
import os
from array import array
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_float, c_int32
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from app.binding.sampling import Sampling, Verify
from app.binding.structs import Bias
from app.binding.structs import Sampling as RawSampling
from app.errors import OptionError, valid_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERIFY: Final = {Verify.GREEDY: 0, Verify.HOST_SAMPLE: 1, Verify.GPU_SAMPLE: 2}


_LEAST_FLOAT: Final = 2.0**-126  # above 0
_BELOW_ONE: Final = 1 - 2.0**-24


def int32(value: int, what: str) -> int:
    """`value`, which C can hold. Raises OptionError for one that ctypes would wrap."""
    return _within(value, what, -(2**31), 2**31 - 1)


def int64(value: int, what: str) -> int:
    """The same for what C holds in 64 bits."""
    return _within(value, what, -(2**63), 2**63 - 1)


def uint64(value: int, what: str) -> int:
    """The same for a seed."""
    return _within(value, what, 0, 2**64 - 1)


def ints(values: Sequence[int]) -> Any:
    """Token ids as C's. Raises OptionError for one beyond 32 bits."""
    try:
        held = array("i", values)
    except (OverflowError, TypeError) as error:
        wrong = next((v for v in values if not isinstance(v, int) or not -(2**31) <= v < 2**31), "")
        raise OptionError(f"{wrong!r} is no token.", remedy="Use ids of the vocabulary.") from error
    return (c_int32 * len(held)).from_buffer(held)


def text(value: str, what: str) -> bytes:
    """`value` as C's. Raises OptionError for one that C would read in part, or not at all."""
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        raw = b"\0"
    return _unbroken(raw, value, what)


def place(path: Path) -> bytes:
    """The same for a path."""
    return _unbroken(os.fsencode(path), str(path), "a file")


def _within(value: int, what: str, least: int, most: int) -> int:
    try:
        number = operator.index(value)
    except TypeError as error:
        raise OptionError(f"`{what}` cannot be {value!r}.", remedy="Use a whole number.") from error
    if not least <= number <= most:
        raise OptionError(f"`{what}` cannot be {value}.", remedy=f"Use {least} to {most}.")
    return number


def _unbroken(raw: bytes, value: str, what: str) -> bytes:
    if b"\0" in raw:
        raise OptionError(f"{value!r} cannot be the name of {what}.", remedy="Use another name.")
    return raw


def floats(array: NDArray[np.float32]) -> Any:
    return array.ctypes.data_as(POINTER(c_float))


def raw_sampling(verify: Verify, sampling: Sampling, seed: int) -> RawSampling:
    """As C has it: what lies between two of its numbers and an end is the number beside that."""
    return RawSampling(
        size=ctypes.sizeof(RawSampling),
        verify=_VERIFY[verify],
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=max(sampling.top_p, _LEAST_FLOAT),
        min_p=min(sampling.min_p, _BELOW_ONE),
        seed=uint64(seed, "seed"),
        presence_penalty=sampling.presence_penalty,
        frequency_penalty=sampling.frequency_penalty,
        repeat_penalty=sampling.repeat_penalty,
        penalty_last_n=sampling.penalty_last_n,
        biases=(Bias * len(sampling.logit_bias))(*(Bias(*pair) for pair in sampling.logit_bias)),
        n_biases=len(sampling.logit_bias),
    )


def tokens_of(text: str, tokenize: Callable[..., int]) -> list[int]:
    """What `tokenize` gives for (bytes, their count, buffer, its capacity)."""
    raw = valid_text(text).encode("utf-8")
    capacity = int32(len(raw) + 8, "length of the text")  # a token has at least a byte
    buffer = (c_int32 * capacity)()
    n = tokenize(raw, len(raw), buffer, capacity)
    if not 0 <= n <= capacity:
        raise OptionError("The text is too long to tokenise.", remedy="Shorten it.")
    return list(buffer[:n])
