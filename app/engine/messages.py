"""Commands to the engine and events from it: frozen, picklable, with a request id.

Every command carries the id under which its events come back. An `Ask` gives
`Prefilled`, then `Decoded` for each round (and once for the token of prefill), then
exactly one `Finished` or `Failed`. A `Load` gives `Loading`s, then `Loaded` or
`Failed`, and later `PlainMeasured`. Nothing here holds a Qt or native object, so
that the engine can move to a process of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.engine.params import AskParams, LoadParams
from app.engine.stats import RoundRecord
from app.errors import SlipstreamError


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation. `reasoning` is an assistant's thinking, if any."""

    role: Role
    content: str
    reasoning: str = ""


# --- commands -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """Load a pair in place of the one that is loaded, if any."""

    request: int
    params: LoadParams


@dataclass(frozen=True, slots=True)
class Ask:
    """Answer the last message of `chat`."""

    request: int
    chat: tuple[ChatMessage, ...]
    params: AskParams


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop the command with id `request`, whether it runs or still waits."""

    request: int


@dataclass(frozen=True, slots=True)
class Unload:
    request: int


@dataclass(frozen=True, slots=True)
class Compare:
    """Run the target alone to where a drafted answer to `chat` left the plain one.

    `plain` are the token ids of the plain answer, `at` the first that differs.
    """

    request: int
    chat: tuple[ChatMessage, ...]
    params: AskParams
    plain: tuple[int, ...]
    at: int


Command = Load | Ask | Cancel | Unload | Compare


# --- events -------------------------------------------------------------------


class FinishReason(StrEnum):
    STOP = "stop"  # the model ended its answer, or a stop string came
    LENGTH = "length"  # the token limit was reached
    CONTEXT = "context"  # the context is full
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device the engine knows. `usable` False comes with the `reason`.

    Memory in bytes, 0 where the device does not say.
    """

    name: str  # as ggml calls it: CPU, CUDA0, Vulkan0
    description: str
    kind: str  # "cpu" or "gpu"
    memory_total: int
    memory_free: int
    usable: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """What was really loaded, told from the library and not from the request."""

    name: str
    target_bytes: int
    draft_bytes: int
    quantisation: str
    backend: str  # "cpu" or "gpu"
    device: DeviceInfo
    layers: int
    layers_on_device: int
    n_ctx: int
    n_vocab: int
    block: int  # the drafter's trained block size in tokens; 0 without a drafter
    draft_device: DeviceInfo | None = None  # of the drafter, where it is another one
    fallback: str = ""  # why the device is not the one asked for, if it is not

    @property
    def has_draft(self) -> bool:
        return self.block > 0


@dataclass(frozen=True, slots=True)
class Loading:
    request: int
    fraction: float  # 0 to 1


@dataclass(frozen=True, slots=True)
class Loaded:
    request: int
    model: LoadedModel
    seconds: float


@dataclass(frozen=True, slots=True)
class PlainMeasured:
    """The rate of plain decoding of the loaded target on its device."""

    request: int
    tokens_per_s: float


@dataclass(frozen=True, slots=True)
class Prefilled:
    """The prompt is in the target: `reused` of its tokens were there already."""

    request: int
    prompt_tokens: int
    reused: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Decoded:
    """New text of an answer. `round` is None for the token that prefill gives."""

    request: int
    text: str
    reasoning: str
    round: RoundRecord | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer, complete in itself; see `stats` for the definitions.

    `token_ids` includes the end-of-generation token where there was one, `text`
    does not. `tokens_per_s` is over the rounds, prefill not included.
    """

    text: str
    reasoning: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    prompt_tokens: int
    reused: int
    rounds: int
    drafted: int
    accepted: int
    accepted_per_round: tuple[int, ...]
    mean_accepted_length: float | None
    tokens_per_s: float | None
    plain_tokens_per_s: float | None
    speedup: float | None
    prefill_ms: float
    draft_ms: float | None  # None where `verify_ms` is the time of both
    verify_ms: float
    host_ms: float
    syncs_per_round: float | None
    graphs_run_per_round: float | None
    graphs_rebuilt: int | None
    bytes_to_host_per_round: float | None
    backend: str
    device: str
    seed: int | None

    @property
    def completion_tokens(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True, slots=True)
class Finished:
    request: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Failed:
    """The command failed; the engine works on. Text that came before stays valid."""

    request: int
    error: SlipstreamError


@dataclass(frozen=True, slots=True)
class Unloaded:
    request: int


@dataclass(frozen=True, slots=True)
class Control:
    """What the target alone does where two greedy answers part.

    `gap`: difference of its two best logits in a pass over one row. `spread`: the largest
    difference of any logit there between a pass over one row and one over many. `flips`:
    whether the pass over many rows chooses otherwise, there or before.
    """

    gap: float
    spread: float
    flips: bool

    @property
    def explains(self) -> bool:
        return self.flips or self.gap <= self.spread


@dataclass(frozen=True, slots=True)
class Compared:
    request: int
    control: Control


Event = (
    Loading | Loaded | PlainMeasured | Prefilled | Decoded | Finished | Failed | Unloaded | Compared
)
