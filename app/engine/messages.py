"""What crosses the door: commands and events, frozen and picklable.

The engine gives a command the id of its request when it is submitted. An `Ask` gives
`Reading`s while a long prompt is read, `Prefilled`, then `Decoded` for each round (and
once for the token of prefill), then `Finished`. A `Load` gives `Loading`s, then `Loaded`.
Whatever is asked ends with exactly one event of `Ending`: what its kind promises, `Failed`,
or `Cancelled`. An `Ask` that is cancelled is `Finished` with what there is of it.

`ModelChanged` and `PlainMeasured` belong to no request: every client is told them.
Nothing here holds a Qt or native object, so that the engine can move to a process of
its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.binding import DeviceInfo, Footprint
from app.conversation import ChatMessage
from app.conversation import Role as Role  # a client builds the chat of a command from both
from app.engine.params import AskParams, LoadParams
from app.engine.plain import Plain
from app.engine.speedup import Speedup
from app.engine.stats import RoundRecord, RoundTotals
from app.errors import SlipstreamError

# --- commands -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """Load a pair in place of the one that is loaded, if any."""

    params: LoadParams


@dataclass(frozen=True, slots=True)
class Ask:
    """Answer the last message of `chat`; where that is an answer already, go on with it."""

    chat: tuple[ChatMessage, ...]
    params: AskParams


@dataclass(frozen=True, slots=True)
class Unload:
    """Free the pair that is loaded, if any."""


@dataclass(frozen=True, slots=True)
class ListDevices:
    """Tell what the engine can compute on; the first one loads the native library."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Measure what the pair does here, which otherwise waits until nothing else does.

    With `exact` also whether drafted text is plain text here.
    """

    exact: bool = False


@dataclass(frozen=True, slots=True)
class Compare:
    """Run the target alone to where a drafted answer to `chat` left the plain one.

    `plain` are the token ids of the plain answer, `at` the first that differs.
    """

    chat: tuple[ChatMessage, ...]
    params: AskParams
    plain: tuple[int, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Count:
    """Count the tokens of the prompt for `chat`. Answered between the rounds of whatever runs."""

    chat: tuple[ChatMessage, ...]
    think: bool = False


Command = Load | Ask | Unload | ListDevices | Measure | Compare | Count


# --- events -------------------------------------------------------------------


class FinishReason(StrEnum):
    STOP = "stop"  # the model ended its answer, or a stop string came
    LENGTH = "length"  # the token limit was reached
    CONTEXT = "context"  # the context is full
    LOOP = "loop"  # it repeated itself without end; see `repetition`
    CANCELLED = "cancelled"


class ThinkingEnd(StrEnum):
    """Why the engine ended a model's thinking in its place, and had it answer."""

    BUDGET = "budget"  # as many tokens as it may have
    ASKED = "asked"  # `Client.answer_now`
    LOOP = "loop"  # it repeated itself without end; see `repetition`


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """What was really loaded, told from the library and not from the request."""

    name: str
    target_bytes: int
    draft_bytes: int
    quantisation: str
    backend: str  # "cpu" or "gpu"
    device: DeviceInfo  # memory as it was after loading
    layers: int
    layers_on_device: int
    n_ctx: int
    n_vocab: int
    block: int  # the drafter's trained block size in tokens; 0 without a drafter
    draft_device: DeviceInfo | None = None  # of the drafter, where it is another one
    fallback: str = ""  # why the device is not the one asked for, if it is not
    exact: bool | None = None  # whether drafted text is plain text bit by bit; None: not known yet
    repairs: str = ""  # what its files lack or the load leaves out, in sentences
    footprint: Footprint = field(default_factory=Footprint)  # what the load took of which memory

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
class Reading:
    """`done` tokens of a prompt of `total` are in the target. Only long prompts tell."""

    request: int
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Prefilled:
    """The prompt is in the target: `reused` of its tokens were there already."""

    request: int
    prompt_tokens: int
    reused: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Decoded:
    """New text of an answer. `round` is None for tokens of none: the one that prefill gives, and
    those that end thinking. `at` is when, in seconds of `time.monotonic`: it is heard of later."""

    request: int
    text: str
    reasoning: str
    round: RoundRecord | None
    at: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer, complete in itself; see `stats` for the definitions.

    `token_ids` includes the end-of-generation token where there was one, `text`
    does not. `thinking_end` None: it did not think, or ended that itself. `outside` is the text
    of each token that belongs to no round, by its id: what rounds gave is told in their records.
    `pace`: how much longer a round took than at its beginning, as `stats.Pace` tells it. `paused`:
    a round was plain because no draft seemed to pay; `rests`: so were the last ones.
    """

    text: str
    reasoning: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    prompt_tokens: int
    reused: int  # prompt tokens that the target held already
    prefill_ms: float
    totals: RoundTotals
    plain: Plain  # by plain steps of its last minute
    backend: str
    device: str
    seed: int | None
    thinking_end: ThinkingEnd | None = None
    outside: Mapping[int, str] = field(default_factory=dict)
    pace: float | None = None
    paused: bool = False
    rests: bool = False

    @classmethod
    def empty(cls, reason: FinishReason) -> Answer:
        """The answer to a question that was not begun."""
        return cls("", "", (), reason, 0, 0, 0.0, RoundTotals(), Plain(), "", "", None)

    @property
    def completion_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def speedup(self) -> Speedup:
        return Speedup.of(self.totals, self.plain, self.pace)


@dataclass(frozen=True, slots=True)
class Finished:
    """`at` as in `Decoded`."""

    request: int
    answer: Answer
    at: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """The command failed; the engine works on. Text that came before stays valid."""

    request: int
    error: SlipstreamError


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The command was stopped before it came to anything."""

    request: int


@dataclass(frozen=True, slots=True)
class Unloaded:
    request: int


@dataclass(frozen=True, slots=True)
class Devices:
    request: int
    devices: tuple[DeviceInfo, ...]  # the CPU first


@dataclass(frozen=True, slots=True)
class Control:
    """What the target alone does where two greedy answers part.

    `gap`: difference of its two best logits in a pass over one row. `spread`: the largest
    difference of any logit there between a pass over one row and one over many; None where the
    pass over many rows left the answer before, so that there is nothing to compare. `flips`:
    whether the pass over many rows chooses otherwise, there or before.
    """

    gap: float
    spread: float | None
    flips: bool

    @property
    def explains(self) -> bool:
        return self.flips or (self.spread is not None and self.gap <= self.spread)


@dataclass(frozen=True, slots=True)
class Compared:
    request: int
    control: Control


@dataclass(frozen=True, slots=True)
class Measured:
    """The rate of plain decoding is known, and what rounds cost; and `exact` if it was asked."""

    request: int
    exact: bool | None = None  # as in `LoadedModel`


@dataclass(frozen=True, slots=True)
class Counted:
    """Tokens that an answer to the chat would read first. It is not cut at the context."""

    request: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ModelChanged:
    """What is loaded now. None: nothing, and `error` says why where that is a failure."""

    model: LoadedModel | None
    error: SlipstreamError | None = None


@dataclass(frozen=True, slots=True)
class PlainMeasured:
    """The rate of plain decoding of the loaded target on its device.

    Without a rate where it could not be measured, with the `error`.
    """

    plain: Plain
    error: SlipstreamError | None = None


@dataclass(frozen=True, slots=True)
class ExactnessProbed:
    """Whether drafted text is plain text on this device, bit by bit.

    Comes once for a loaded pair, when nothing else was asked for long enough; not at all where
    `LoadedModel.exact` tells it already, or the context has no room for the probe.
    """

    exact: bool


Ending = Loaded | Finished | Unloaded | Devices | Measured | Compared | Counted | Failed | Cancelled
"""The last event of a request is one of these."""

Own = Loading | Reading | Prefilled | Decoded | Ending
"""Events of one request, for the client that made it."""

Shared = ModelChanged | PlainMeasured | ExactnessProbed
"""Events for every client."""

Event = Own | Shared
