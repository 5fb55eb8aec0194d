"""What can be asked of the engine: validated, frozen, picklable."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from app import limits
from app.binding import Sampling, Verify
from app.errors import OptionError


class Backend(StrEnum):
    """Where the pair runs. AUTO takes a GPU if one can really be used."""

    AUTO = "auto"
    CPU = "cpu"
    GPU = "gpu"


class KvType(StrEnum):
    """How the target's attention keeps keys and values, by ggml's names.

    Half the bytes of F16 a token with Q8_0, a quarter with Q4_0, at some loss.
    """

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    Q8_0 = "q8_0"
    Q4_0 = "q4_0"


@dataclass(frozen=True, slots=True)
class LoadParams:
    """Which files to load and how.

    `device` is the name of one of the engine's devices, for who wants that one and no other; it
    takes the place of `backend`. `draft_backend` puts the drafter on another device than the target
    (None: the same). `n_ctx` is the context in tokens (None: as many as fit, up to 32,768),
    `n_ubatch` the micro-batch of prefill in tokens, `threads` the CPU threads (None: as many as
    there are cores). `kv_type` None is F32 beside weights that are all F32, and F16 else.
    """

    target: Path
    draft: Path | None = None
    backend: Backend = Backend.AUTO
    n_ctx: int | None = None
    n_ubatch: int = 512
    threads: int | None = None
    draft_backend: Backend | None = None
    kv_type: KvType | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        for name in ("n_ctx", "n_ubatch", "threads"):
            if (value := getattr(self, name)) is not None:
                limits.check(name, value)


@dataclass(frozen=True, slots=True)
class AskParams:
    """How one answer is made.

    `block` is the number of positions verified in a round (the anchor and
    block - 1 drafted tokens); None takes the drafter's own. `draft` False is plain
    decoding. `lookup`: where the text repeats itself, drafts come from there. `stop` ends
    the answer before any of these strings, `stop_tokens` with any of these ids, besides
    the model's own end-of-generation tokens. `loop_guard` ends one that repeats itself
    without end. `think_budget` is the most tokens of thinking (None: no limit): after them
    the model is made to answer.
    """

    max_tokens: int = 1024
    verify: Verify = Verify.GREEDY
    sampling: Sampling = field(default_factory=Sampling)
    block: int | None = None
    draft: bool = True
    lookup: bool = True
    think: bool = False
    stop: tuple[str, ...] = ()
    stop_tokens: frozenset[int] = frozenset()
    loop_guard: bool = True
    think_budget: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_tokens", "block", "think_budget"):
            if (value := getattr(self, name)) is not None:
                limits.check(name, value)
        if any(not s for s in self.stop):
            raise OptionError("A stop string is empty.", remedy="Give it text or leave it out.")
