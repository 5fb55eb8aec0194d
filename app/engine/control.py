"""Lossless or not: the control run for a drafted answer that differs from the plain one.

A pass over many rows rounds otherwise than a pass over one. Where the two best tokens are
closer than that, the target alone, without any drafter, may choose either: such a difference
is the arithmetic's, every other one is a fault.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.binding import NativePair, Sampling
from app.engine.answering import check_numbers
from app.engine.messages import Control, LoadedModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def control(
    pair: NativePair,
    model: LoadedModel,
    prompt: Sequence[int],
    plain: Sequence[int],
    at: int,
    rows: int,
    sampling: Sampling,
    closing: Sequence[int] = (),
) -> Control:
    """Runs the target alone to token `at` of its own greedy answer `plain`, over one row and
    over `rows`, with the penalties and biases of `sampling`. Forgets what the pair held.

    Where `closing` stands in `plain`, the engine ended the thinking with it: it is read there, as
    it was then, and not chosen. Raises NonFiniteError.
    """
    behind = _behind(plain[:at], closing)

    def read(end: int) -> int:
        token, _ = pair.prompt([*prompt, *plain[:end]], drafting=False, sampling=sampling)
        check_numbers(token, pair, model)
        return token

    pair.reset()
    read(0)
    start = 0  # this token of the answer is chosen, those before it are read
    while start < at:
        if start in behind:
            start = behind[start]
            read(start)
        else:
            check_numbers(pair.round(0).emitted[-1], pair, model)
            start += 1
    before = [*prompt, *plain[:at]]
    one = penalised(pair.last_logits(0), before, sampling)
    pair.reset()
    if at == 0:  # it is chosen by the prompt's pass, which both runs have
        return Control(_gap(one), 0.0, False)

    read(0)
    start = 0
    while True:
        if start in behind:
            start = behind[start] - 1
            emitted: tuple[int, ...] = (read(start + 1),)
        else:
            end = min([start + rows, *(place for place in behind if place > start)])
            emitted = pair.round_given(plain[start + 1 : end]).emitted
            check_numbers(emitted[-1], pair, model)
        wanted = plain[start + 1 : start + 1 + len(emitted)]
        if at <= start + len(emitted):
            many = penalised(pair.last_logits(at - start - 1), before, sampling)
            flips = list(emitted[: at - start]) != list(wanted[: at - start])
            break
        if list(emitted) != list(wanted):
            return Control(_gap(one), None, True)
        start += len(emitted)
    pair.reset()
    return Control(_gap(one), float(abs(one - many).max()), flips)


def penalised(
    logits: NDArray[np.float32], before: Sequence[int], sampling: Sampling
) -> NDArray[np.float32]:
    """The logits [n_vocab] of the place behind `before`, with penalties and biases.

    Not by the native library: a control run must not share the fault that it looks for.
    """
    result = logits.copy()
    for token, bias in sampling.logit_bias:
        result[token] += bias
    last = sampling.penalty_last_n
    window = before if last < 0 else before[max(0, len(before) - last) :]
    for token, count in Counter(window).items():
        scale = sampling.repeat_penalty
        result[token] *= 1 / scale if result[token] > 0 else scale
        result[token] -= count * sampling.frequency_penalty + sampling.presence_penalty
    return result


def _behind(plain: Sequence[int], closing: Sequence[int]) -> dict[int, int]:
    """The place before each `closing` in `plain`, and the one behind it."""
    n, wanted = len(closing), list(closing)
    starts = range(1, len(plain) - n + 1) if n else ()
    return {at - 1: at + n for at in starts if list(plain[at : at + n]) == wanted}


def _gap(logits: NDArray[np.float32]) -> float:
    first, second = heapq.nlargest(2, logits)
    return float(first - second)
