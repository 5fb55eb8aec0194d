"""How a token is chosen: the mode, and the distribution to draw from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from app.errors import OptionError


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
        if not (math.isfinite(self.temperature) and 0.0 <= self.temperature <= 5.0):
            raise OptionError(
                f"Temperature {self.temperature} is out of range.", remedy="Use 0 to 5."
            )
        if self.top_k < 0:
            raise OptionError(f"Top-k {self.top_k} is negative.", remedy="Use 0 (off) or more.")
        if not 0.0 < self.top_p <= 1.0:
            raise OptionError(
                f"Top-p {self.top_p} is out of range.", remedy="Use above 0, up to 1."
            )
        if not 0.0 <= self.min_p < 1.0:
            raise OptionError(f"Min-p {self.min_p} is out of range.", remedy="Use 0 to below 1.")
        if self.seed is not None and not 0 <= self.seed < 2**64:
            raise OptionError(f"Seed {self.seed} is out of range.", remedy="Use 0 to 2^64 - 1.")
