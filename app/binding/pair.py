"""One loaded pair, as the library sees it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_int32, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.binding.arrays import floats, int32, ints, place, raw_sampling, text, tokens_of
from app.binding.library import library
from app.binding.records import (
    Estimate,
    Exactness,
    Footprint,
    Learned,
    Memory,
    NativeRound,
    PairInfo,
    WidthReason,
)
from app.binding.registered import described
from app.binding.sampling import Sampling, Verify
from app.binding.status import check
from app.binding.structs import (
    Error,
    Info,
    LoadOptions,
    ProgressCallback,
    PromptOptions,
    PromptResult,
    RoundResult,
)
from app.binding.structs import Estimate as RawEstimate
from app.binding.structs import Exactness as RawExactness
from app.binding.structs import Footprint as RawFootprint
from app.binding.structs import Learned as RawLearned
from app.errors import OptionError, TemplateError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_REASONS: Final = tuple(WidthReason)


class NativePair:
    """One loaded pair. One thread at a time; `cancel` alone may come from any.

    Every method raises the error of `app.errors` that fits the native status, or
    `JobCancelled`. What is loaded is freed by `close`.
    """

    def __init__(
        self,
        target: Path,
        draft: Path | None = None,
        *,
        device: str | None = None,
        draft_device: str | None = None,
        kv_type: str | None = None,
        n_ctx: int | None = 4096,
        n_ubatch: int = 512,
        threads: int | None = None,
        draft_rows: int | None = None,
        least_share: float = 0.0,
        progress: Callable[[float], bool] | None = None,
    ) -> None:
        """`device` None is the CPU; `draft_device` None: the drafter runs where the target
        does. `kv_type` is how the target's attention keeps keys and values ("q8_0"); None: as
        exact as the weights are. `n_ctx` None: as much context as fits. `threads` None: one a
        core. `draft_rows`: of the head, that a draft reads; None: as many as pay. Where fewer than
        `least_share` of the layers fit on the device, that is an OutOfMemoryError.

        `progress` gets fractions from 0 to 1; False from it cancels the load.
        """
        self._lib = library()
        self._file = target.name
        self._handle = c_void_p()
        self.cancelled = False
        callback = ProgressCallback(
            (lambda fraction, _user: int(progress(fraction))) if progress else (lambda *_: 1)
        )
        options = _options(
            target, draft, device, draft_device, kv_type, n_ctx, n_ubatch, threads, draft_rows
        )
        options.least_share, options.progress = least_share, callback
        error = Error()
        check(self._lib.slip_load(byref(options), byref(self._handle), byref(error)), error)
        try:
            self.info = self._read_info()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Frees the pair; a second call does nothing."""
        if self._handle:
            self._lib.slip_free(self._handle)
            self._handle = c_void_p()

    @property
    def handle(self) -> c_void_p:
        """What the library calls it by. Raises OptionError once it is closed."""
        if not self._handle:
            raise OptionError("The model is not loaded any more.", remedy="Load it again.")
        return self._handle

    def cancel(self, cancelled: bool) -> None:
        """While True, what runs and what comes raises `JobCancelled` as soon as it can."""
        self.cancelled = cancelled
        if self._handle:
            self._lib.slip_cancel(self._handle, int(cancelled))

    # --- text ---

    def chat_template(self) -> str | None:
        """The target's Jinja template. Raises TemplateError where it is no UTF-8."""
        raw = self._lib.slip_chat_template(self.handle)
        try:
            return raw.decode("utf-8") if raw else None
        except UnicodeDecodeError as error:
            raise TemplateError(
                f"The chat template of `{self._file}` (`tokenizer.chat_template`) is not UTF-8: "
                f"{error.reason} at byte {error.start}.",
                remedy="Convert the model again from an intact checkpoint.",
            ) from error

    def tokenize(self, text: str) -> list[int]:
        """Token ids of text. Control tokens that it spells do not come out; tokens defined
        beside the vocabulary do, see `special_tokens`."""
        return tokens_of(text, lambda *call: self._lib.slip_tokenize(self.handle, *call))

    def special_tokens(self) -> dict[str, int]:
        """Ids of the tokens that stand for more than their text, by that text."""
        count = self._lib.slip_special_tokens(self.handle, None, 0)
        ids = (c_int32 * count)()
        self._lib.slip_special_tokens(self.handle, ids, count)
        texts = (self.token_bytes(id_, special=True).decode("utf-8", "replace") for id_ in ids)
        return dict(zip(texts, ids, strict=True))

    def token_bytes(self, token: int, *, special: bool = False) -> bytes:
        """Bytes of a token; none for a special one unless `special`."""
        token, capacity = int32(token, "token"), 64
        while True:
            buffer = ctypes.create_string_buffer(capacity)
            n = self._lib.slip_token_bytes(self.handle, token, int(special), buffer, capacity)
            if n >= 0:
                return buffer.raw[:n]
            capacity = -n

    def is_end(self, token: int) -> bool:
        return bool(self._lib.slip_is_end(self.handle, int32(token, "token")))

    # --- decoding ---

    @property
    def position(self) -> int:
        """Tokens the target holds, the anchor not counted."""
        return int(self._lib.slip_position(self.handle))

    def reset(self) -> None:
        self._lib.slip_reset(self.handle)

    def prompt(
        self,
        tokens: Sequence[int],
        *,
        keep: int = 0,
        drafting: bool = True,
        verify: Verify = Verify.GREEDY,
        sampling: Sampling | None = None,
        seed: int = 0,
    ) -> tuple[int, int]:
        """Reads a prompt; returns (first token of the answer, tokens reused). The token is -1
        where a logit that it was to be chosen by is not finite, and no round may follow."""
        options = PromptOptions(
            size=ctypes.sizeof(PromptOptions),
            tokens=ints(tokens),
            n_tokens=len(tokens),
            n_keep=int32(keep, "keep"),
            drafting=int(drafting),
            sampling=raw_sampling(verify, sampling or Sampling(), seed),
        )
        result, error = PromptResult(size=ctypes.sizeof(PromptResult)), Error()
        status = self._lib.slip_prompt(self.handle, byref(options), byref(result), byref(error))
        check(status, error)
        return result.token, result.n_reused

    def round(
        self, n_draft: int, *, governed: bool = False, hint: Sequence[int] = ()
    ) -> NativeRound:
        """One round with at most `n_draft` drafted tokens; 0 is a plain step.

        `governed`: as many of them as pay. `hint`: what may come; where the drafter begins as it
        does, it is verified for the rest of the draft.
        """
        most, given = int32(n_draft, "n_draft"), ints(hint)
        governs = int(governed)
        return self._round(
            lambda *out: self._lib.slip_round(self.handle, most, governs, given, len(hint), *out)
        )

    def round_given(self, draft: Sequence[int]) -> NativeRound:
        """One round that verifies `draft` instead of the drafter's proposal."""
        given = ints(draft)
        return self._round(
            lambda *out: self._lib.slip_round_given(self.handle, given, len(draft), *out)
        )

    def last_logits(self, row: int = 0) -> NDArray[np.float32]:
        """Logits [n_vocab], float32, of an output row of the target's last pass."""
        import numpy as np  # takes a tenth of a second, and no answer needs it

        logits = np.empty(self.info.n_vocab, dtype=np.float32)
        at, error = int32(row, "row"), Error()
        check(self._lib.slip_last_logits(self.handle, at, floats(logits), byref(error)), error)
        return logits

    def learned(self) -> Learned:
        """What the governor has learned of how drafts are accepted, from all governed rounds."""
        raw, error = RawLearned(size=ctypes.sizeof(RawLearned)), Error()
        check(self._lib.slip_get_learned(self.handle, byref(raw), byref(error)), error)
        n = self.info.block + 1
        return Learned(tuple(raw.common), tuple(raw.hits[:n]), tuple(raw.foreseen[:n]))

    def set_learned(self, learned: Learned) -> None:
        """Gives that back: the next answer begins with it. Raises OptionError if it is damaged."""
        raw, error = RawLearned(size=ctypes.sizeof(RawLearned)), Error()
        for name in ("common", "hits", "foreseen"):
            to, of = getattr(raw, name), getattr(learned, name)
            if len(of) > len(to):
                raise OptionError("What was learned is too long.", remedy="Begin without it.")
            to[: len(of)] = of
        check(self._lib.slip_set_learned(self.handle, byref(raw), byref(error)), error)

    def probe_exact(self) -> Exactness:
        """Whether drafted text is plain text here, bit by bit; forgets all tokens.

        Takes about two passes for each width of a verify. Raises `JobCancelled`.
        """
        raw, error = RawExactness(size=ctypes.sizeof(RawExactness)), Error()
        check(self._lib.slip_probe_exact(self.handle, byref(raw), byref(error)), error)
        return Exactness(bool(raw.exact), raw.width or None, raw.widest)

    def _round(self, call: Callable[..., int]) -> NativeRound:
        result, error = RoundResult(size=ctypes.sizeof(RoundResult)), Error()
        check(call(byref(result), byref(error)), error)
        return NativeRound(
            reason=_REASONS[result.reason],
            drafted=tuple(result.drafted[: result.n_drafted]),
            emitted=tuple(result.emitted[: result.n_accepted + 1]),
            own=result.n_own,
            head_rows=result.head_rows,
            syncs=result.n_syncs,
            graphs_run=result.n_graphs_run,
            graphs_rebuilt=result.n_graphs_rebuilt,
            bytes_to_host=result.bytes_to_host,
            draft_us=result.draft_us if result.draft_us >= 0 else None,
            verify_us=result.verify_us,
        )

    def _read_info(self) -> PairInfo:
        raw, error = Info(size=ctypes.sizeof(Info)), Error()
        check(self._lib.slip_get_info(self.handle, byref(raw), byref(error)), error)
        apart = ("name", "quantisation", "device", "draft_device", "repairs", "footprint")
        return PairInfo(
            name=raw.name.decode("utf-8", "replace"),
            quantisation=raw.quantisation.decode(),
            device=described(raw.device),
            draft_device=described(raw.draft_device),
            repairs=raw.repairs.decode("utf-8", "replace"),
            footprint=_footprint(raw.footprint),
            **{f: getattr(raw, f) for f in PairInfo.__dataclass_fields__ if f not in apart},
        )


def estimate(
    target: Path,
    draft: Path | None = None,
    *,
    device: str | None = None,
    draft_device: str | None = None,
    kv_type: str | None = None,
    n_ctx: int | None = None,
    n_ubatch: int = 512,
    draft_rows: int | None = None,
) -> Estimate:
    """What a `NativePair` of these would take, and how much context fits; reads no weights.

    Raises OutOfMemoryError where it would not fit, and what a load raises for its files.
    """
    raw, error = RawEstimate(size=ctypes.sizeof(RawEstimate)), Error()
    options = _options(
        target, draft, device, draft_device, kv_type, n_ctx, n_ubatch, None, draft_rows
    )
    check(library().slip_estimate_load(byref(options), byref(raw), byref(error)), error)
    return Estimate(raw.n_ctx, _footprint(raw.footprint))


def _options(
    target: Path,
    draft: Path | None,
    device: str | None,
    draft_device: str | None,
    kv_type: str | None,
    n_ctx: int | None,
    n_ubatch: int,
    threads: int | None,
    draft_rows: int | None,
) -> LoadOptions:
    return LoadOptions(
        size=ctypes.sizeof(LoadOptions),
        target=place(target),
        draft=place(draft) if draft else None,
        device=text(device, "a device") if device else None,
        draft_device=text(draft_device, "a device") if draft_device else None,
        kv_type=text(kv_type, "a type") if kv_type else None,
        n_ctx=int32(n_ctx or 0, "n_ctx"),
        n_ubatch=int32(n_ubatch, "n_ubatch"),
        n_threads=int32(threads or 0, "threads"),
        draft_rows=int32(draft_rows or 0, "draft_rows"),
    )


def _footprint(raw: RawFootprint) -> Footprint:
    def memory(name: str) -> Memory:
        part = getattr(raw, name)
        return Memory(**{field: getattr(part, field) for field in Memory.__dataclass_fields__})

    return Footprint(**{name: memory(name) for name in Footprint.__dataclass_fields__})
