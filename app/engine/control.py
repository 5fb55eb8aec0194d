"""Lossless or not: the control run for a drafted answer that differs from the plain one.

A pass over many rows rounds otherwise than a pass over one. Where the two best tokens are
closer than that, the target alone, without any drafter, may choose either: such a difference
is the arithmetic's, every other one is a fault.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.binding import NativePair
from app.engine.messages import Control

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def control(
    pair: NativePair, prompt: Sequence[int], plain: Sequence[int], at: int, rows: int
) -> Control:
    """Runs the target alone to token `at` of its own greedy answer `plain`, over one row and
    over `rows`. Forgets what the pair held."""
    pair.reset()
    pair.prompt(prompt, drafting=False)
    for _ in range(at):
        pair.round(0)
    one = pair.last_logits(0)

    pair.reset()
    pair.prompt(prompt, drafting=False)
    start = 0  # tokens up to this one of the answer are behind us
    while True:
        emitted = pair.round_given(plain[start + 1 : start + rows]).emitted
        wanted = plain[start + 1 : start + 1 + len(emitted)]
        if at <= start + len(emitted):
            many = pair.last_logits(at - start - 1)
            flips = list(emitted[: at - start]) != list(wanted[: at - start])
            break
        if list(emitted) != list(wanted):
            return Control(_gap(one), float("nan"), True)
        start += len(emitted)
    pair.reset()
    return Control(_gap(one), float(abs(one - many).max()), flips)


def _gap(logits: NDArray[np.float32]) -> float:
    first, second = heapq.nlargest(2, logits)
    return float(first - second)
