"""How a token is chosen: the mode, and the distribution to draw from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from app import limits

PENALTIES: Final = ("presence_penalty", "frequency_penalty", "repeat_penalty", "penalty_last_n")


class Verify(StrEnum):
    """How the target's choice at each position is made.

    GREEDY takes the most likely token; HOST_SAMPLE and GPU_SAMPLE draw from the
    target's distribution with random numbers keyed by (seed, position), on the
    host or on the device.
    """

    GREEDY = "greedy"
    GPU_SAMPLE = "gpu-sample"
    HOST_SAMPLE = "host-sample"


@dataclass(frozen=True, slots=True)
class Sampling:
    """The distribution to draw from, applied in this order.

    `logit_bias` are pairs of a token id and what is added to its logit. Then, as llama.cpp has it,
    the logit of a token that is c > 0 times among the last `penalty_last_n` tokens before its
    place (0: no penalties, -1: all; prompt and answer alike) is divided by `repeat_penalty` (1:
    none), or multiplied where it is not positive, and loses c * `frequency_penalty` +
    `presence_penalty` (0: none). These hold for greedy choices too.

    `top_k` keeps the k most likely tokens (0: all; of equals at the edge none),
    `top_p` the smallest set whose probability reaches p (1: all), `min_p` those
    at least `min_p` times as likely as the best (0: all), each on the untempered
    distribution; what is left is then drawn from at `temperature` (0 is greedy).
    `seed` None takes a fresh seed for every answer. Raises OptionError for what is
    out of range.
    """

    temperature: float = 0.7
    top_k: int = 20
    top_p: float = 0.8
    min_p: float = 0.0
    seed: int | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repeat_penalty: float = 1.0
    penalty_last_n: int = 64
    logit_bias: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        for name in ("temperature", "top_k", "top_p", "min_p", "seed", *PENALTIES):
            if (value := getattr(self, name)) is not None:
                limits.check(name, value)
        for token, bias in self.logit_bias:
            limits.check("token", token)
            limits.check("logit_bias", bias)
