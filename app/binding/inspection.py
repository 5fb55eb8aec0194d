"""The library looked at from inside: what only tests call."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import POINTER, byref, c_int32, sizeof

import numpy as np
from numpy.typing import NDArray

from app.binding.arrays import floats, int32, ints, raw_sampling, text
from app.binding.library import library
from app.binding.pair import NativePair
from app.binding.records import Costs
from app.binding.sampling import Sampling, Verify
from app.binding.status import check
from app.binding.structs import Costs as RawCosts
from app.binding.structs import Error, Past


def choose(
    logits: NDArray[np.float32],
    verify: Verify,
    sampling: Sampling,
    *,
    seed: int,
    position: int = 0,
    device: str | None = None,
    before: Sequence[int] = (),
    block: Sequence[int] | None = None,
) -> NDArray[np.int32]:
    """Tokens [rows] that a verify would choose for `logits` [rows, vocabulary].

    Row i draws as for absolute position `position` + i, and comes behind the tokens `before` it and
    the first i of `block` (rows - 1 tokens; None: all rows stand at one place). `device`: the CPU
    if None.
    """
    logits = np.ascontiguousarray(logits, dtype=np.float32)
    tokens = np.empty(len(logits), dtype=np.int32)
    error = Error()
    status = library().slip_choose(
        text(device, "a device") if device else None,
        byref(raw_sampling(verify, sampling, seed)),
        byref(Past(ints(before), len(before), None if block is None else ints(block))),
        floats(logits),
        logits.shape[1],
        len(logits),
        int32(position, "position"),
        tokens.ctypes.data_as(POINTER(c_int32)),
        byref(error),
    )
    check(status, error)
    return tokens


def eval_target(pair: NativePair, tokens: Sequence[int], rows: int = 1) -> NDArray[np.float32]:
    """Logits [len(tokens), n_vocab], float32, in passes of `rows` tokens. Forgets all tokens."""
    logits = np.empty((len(tokens), pair.info.n_vocab), dtype=np.float32)
    error = Error()
    status = library().slip_eval(
        pair.handle, ints(tokens), len(tokens), int32(rows, "rows"), floats(logits), byref(error)
    )
    check(status, error)
    return logits


def eval_draft(
    pair: NativePair, tokens: Sequence[int], anchor: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """One block behind `tokens`, alone: (features [len(tokens), taps * n_embd],
    hidden [block, n_embd_draft]), float32. Forgets all tokens."""
    info = pair.info
    features = np.empty((len(tokens), info.n_taps * info.n_embd), dtype=np.float32)
    hidden = np.empty((info.block, info.n_embd_draft), dtype=np.float32)
    error = Error()
    status = library().slip_eval_draft(
        pair.handle,
        ints(tokens),
        len(tokens),
        int32(anchor, "anchor"),
        floats(features),
        floats(hidden),
        byref(error),
    )
    check(status, error)
    return features, hidden


def measure_costs(pair: NativePair) -> Costs:
    """What rounds cost here; takes up to two seconds and forgets all tokens."""
    costs, error = RawCosts(size=sizeof(RawCosts)), Error()
    check(library().slip_measure_costs(pair.handle, byref(costs), byref(error)), error)
    return Costs(costs.plain, costs.draft, costs.draft_one, tuple(costs.verify))


def set_costs(pair: NativePair, costs: Costs) -> None:
    """Gives them to its governor in place of what that knows. Raises OptionError."""
    raw = RawCosts(sizeof(RawCosts), costs.plain, costs.draft, costs.draft_one)
    known = costs.verify[: len(raw.verify)]  # wider than any block none is asked for
    raw.verify[: len(known)] = known
    error = Error()
    check(library().slip_set_costs(pair.handle, byref(raw), byref(error)), error)
