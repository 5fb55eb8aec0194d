"""What can be asked of the engine: validated, frozen, picklable."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from app.binding import Sampling, Verify
from app.errors import OptionError

MIN_CONTEXT: Final = 256
MIN_UBATCH: Final = 8


class Backend(StrEnum):
    """Where the pair runs. AUTO takes a GPU if one can really be used."""

    AUTO = "auto"
    CPU = "cpu"
    GPU = "gpu"


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
