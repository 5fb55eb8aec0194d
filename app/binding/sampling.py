"""How a token is chosen: the mode, and the distribution to draw from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app import limits


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

    def __post_init__(self) -> None:
        for name in ("temperature", "top_k", "top_p", "min_p", "seed"):
            if (value := getattr(self, name)) is not None:
                limits.check(name, value)
