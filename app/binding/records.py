"""What the library tells: of a device, a pair, a round, of what rounds cost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_BLOCK: Final = 64
ACCEPTANCE_RATES: Final = 10

# Software renderers by what they call themselves: Mesa's, Chromium's, Windows'.
_SOFTWARE: Final = ("llvmpipe", "SwiftShader", "Microsoft Basic Render")


class WidthReason(StrEnum):
    """Why a round verified as many tokens as it did; the order is the header's."""

    FIXED = "fixed"  # asked for
    WHOLE = "whole"  # the whole block pays
    PAYS = "pays"  # this width gives most tokens a second
    PLAIN = "plain"  # no width pays, or none may be risked yet
    PROBE = "probe"  # none pays; a try whether that has changed


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device that ggml knows. `usable` False comes with the `reason`.

    Memory in bytes, 0 where the device does not say.
    """

    name: str  # as ggml calls it: CPU, CUDA0, Vulkan0
    description: str
    kind: str  # "cpu" or "gpu"
    memory_total: int
    memory_free: int
    usable: bool
    reason: str = ""
    backend: str = ""  # what drives it: "cpu", "cuda", "vulkan", "metal", "hip", "sycl"
    integrated: bool = False  # a GPU that shares the machine's memory

    @property
    def software(self) -> bool:
        """Whether it only looks like a GPU, and computes on the processor."""
        return self.kind == "gpu" and any(name in self.description for name in _SOFTWARE)


@dataclass(frozen=True, slots=True)
class Memory:
    """`slip_memory` of the header: bytes of one memory that a load takes."""

    weights: int = 0
    mapped: int = 0  # of these, from the file: they need not all be there
    context: int = 0  # keys, values and recurrent state
    compute: int = 0  # of passes, while they run
    drafter: int = 0  # all that is its own
    free: int = 0  # 0 where it is not known

    @property
    def total(self) -> int:
        return self.weights + self.context + self.compute + self.drafter


@dataclass(frozen=True, slots=True)
class Footprint:
    """`slip_footprint` of the header: what a load takes of each memory.

    `device` is the target's GPU, `draft_device` the drafter's where that is another one: both
    take nothing where there is none.
    """

    device: Memory = Memory()
    draft_device: Memory = Memory()
    host: Memory = Memory()

    @property
    def total(self) -> int:
        return self.device.total + self.draft_device.total + self.host.total


@dataclass(frozen=True, slots=True)
class Estimate:
    """`slip_estimate` of the header: what a load will take with a context of `n_ctx` tokens."""

    n_ctx: int
    footprint: Footprint


@dataclass(frozen=True, slots=True)
class PairInfo:
    """`slip_info` of the header. Sizes in bytes, lengths in tokens."""

    name: str
    quantisation: str
    target_bytes: int
    draft_bytes: int
    n_ctx: int
    n_ubatch: int
    n_vocab: int
    n_embd: int
    n_embd_draft: int
    n_layers: int
    n_layers_device: int
    n_taps: int
    block: int
    draft_rows: int  # of the target's head that a draft reads; 0 without a drafter
    device: DeviceInfo
    draft_device: DeviceInfo
    bos: int  # the token that begins a text, where the file names one, or -1
    eos: int  # the token that ends an answer
    footprint: Footprint
    repairs: str  # what the files lack or the load leaves out, in sentences


@dataclass(frozen=True, slots=True)
class Exactness:
    """`slip_exactness` of the header: whether a row's bits depend on the rows beside it."""

    exact: bool
    width: int | None  # the first that gave other bits than one token at a time
    widest: int  # widths from 2 to this were to be tried


@dataclass(frozen=True, slots=True)
class Costs:
    """`slip_costs` of the header: what passes take, in milliseconds.

    `draft` is a draft of the whole block, `draft_one` one with the head for a single token,
    `verify[w]` a verify of w tokens; 0 where it was not measured.
    """

    plain: float
    draft: float
    draft_one: float
    verify: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Learned:
    """`slip_learned` of the header: what the governor knows of how drafts are accepted.

    `common` are shares of 1, `hits` and `foreseen` counts by position, up to the block's.
    """

    common: tuple[float, ...]
    hits: tuple[float, ...]
    foreseen: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class NativeRound:
    """`slip_round_result` of the header. Times in microseconds.

    `draft_us` None: not told apart, `verify_us` is the time of draft and verify.
    """

    reason: WidthReason
    drafted: tuple[int, ...]
    emitted: tuple[int, ...]  # the last is -1 where the logits for it are not all finite
    own: int  # of the drafted tokens, the first ones that are the drafter's
    head_rows: int  # that the draft read; 0 where the drafter made none
    syncs: int
    graphs_run: int
    graphs_rebuilt: int
    bytes_to_host: int
    draft_us: int | None
    verify_us: int
