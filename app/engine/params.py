"""What can be asked of the engine: validated, frozen, picklable."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from app.errors import OptionError

MIN_CONTEXT: Final = 256
MIN_UBATCH: Final = 8


class Backend(StrEnum):
    """Where the pair runs. AUTO takes a GPU if one can really be used."""

    AUTO = "auto"
    CPU = "cpu"
    GPU = "gpu"


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
class LoadParams:
    """Which files to load and how.

    `draft_backend` puts the drafter on another device than the target (None: the
    same). `n_ctx` is the context in tokens, `n_ubatch` the micro-batch of prefill in
    tokens, `threads` the CPU threads (None: as many as there are cores).
    """

    target: Path
    draft: Path | None = None
    backend: Backend = Backend.AUTO
    n_ctx: int = 4096
    n_ubatch: int = 512
    threads: int | None = None
    draft_backend: Backend | None = None

    def __post_init__(self) -> None:
        _at_least("The context", self.n_ctx, MIN_CONTEXT, "tokens")
        _at_least("The micro-batch", self.n_ubatch, MIN_UBATCH, "tokens")
        if self.threads is not None:
            _at_least("The number of threads", self.threads, 1, "")


@dataclass(frozen=True, slots=True)
class Sampling:
    """The distribution to draw from, applied in this order.

    `top_k` keeps the k most likely tokens (0: all), `top_p` the smallest set
    whose probability reaches p (1: all), `min_p` those at least `min_p` times
    as likely as the best (0: all), each on the untempered distribution; what is
    left is then drawn from at `temperature` (0 is greedy). `seed` None takes a
    fresh seed for every answer.
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


@dataclass(frozen=True, slots=True)
class AskParams:
    """How one answer is made.

    `block` is the number of positions verified in a round (the anchor and
    block - 1 drafted tokens); None takes the drafter's own. `draft` False is plain
    decoding. `stop` ends the answer before any of these strings, `stop_tokens`
    with any of these ids, besides the model's own end-of-generation tokens.
    """

    max_tokens: int = 1024
    verify: Verify = Verify.GREEDY
    sampling: Sampling = field(default_factory=Sampling)
    block: int | None = None
    draft: bool = True
    think: bool = False
    stop: tuple[str, ...] = ()
    stop_tokens: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        _at_least("The token limit", self.max_tokens, 0, "tokens")
        if self.block is not None:
            _at_least("The block", self.block, 1, "tokens")
        if any(not s for s in self.stop):
            raise OptionError("A stop string is empty.", remedy="Give it text or leave it out.")


def _at_least(name: str, value: int, least: int, unit: str) -> None:
    if value < least:
        at_least = f"{least} {unit}".strip()
        raise OptionError(f"{name} of {value} is too small.", remedy=f"Use {at_least} or more.")
