"""One loaded pair: prompt, rounds, stop rules, counters. No thread of its own.

A generator of events, so that the caller decides when the next round runs.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from app import paths
from app.engine import costs, devices
from app.engine.control import control
from app.engine.messages import (
    Answer,
    ChatMessage,
    Control,
    Decoded,
    DeviceInfo,
    Event,
    Finished,
    FinishReason,
    LoadedModel,
    Prefilled,
)
from app.engine.native import Cancelled, NativePair, NativeRound
from app.engine.params import AskParams, Backend, LoadParams
from app.engine.stats import RoundRecord, RoundTotals, median, speedup
from app.engine.template import THINK_CLOSE, THINK_OPEN, ChatTemplate, begins_thinking
from app.engine.text import AnswerText, Piece
from app.errors import ContextFullError, DeviceError

_PROBE_TEXT = "The quick brown fox jumps over the lazy dog. "
_PROBE_STEPS = (4, 48)  # at least, at most
_PROBE_SECONDS = 0.5
_SAME_SPEED = 1.5  # factor up to which costs measured earlier still hold


class Session:
    """A loaded pair. Methods raise the errors of `app.errors`, or `Cancelled`."""

    def __init__(self, params: LoadParams, progress: Callable[[float], bool] | None = None) -> None:
        device, fallback = devices.choose(params.backend)
        draft = None
        if params.draft and params.draft_backend:
            draft = devices.choose(params.draft_backend)[0].name
        try:
            self.pair = NativePair(params, _name(device), progress, draft)
        except DeviceError as error:
            if params.backend is not Backend.AUTO or device.kind == "cpu":
                raise
            # A GPU that is too small is no reason not to answer; say what happened.
            device, fallback = devices.choose(Backend.CPU)[0], error.message
            self.pair = NativePair(params, _name(device), progress)
        self.model = self._loaded(params, device, fallback)
        self._params = params
        self._template = ChatTemplate(self.pair.chat_template, params.target.name)
        self._think_open = self._marker(THINK_OPEN)
        self._think_close = self._marker(THINK_CLOSE)
        self.plain_tokens_per_s: float | None = None

    def close(self) -> None:
        self.pair.close()

    def measure_costs(self) -> None:
        """Tells the governor what rounds cost here, from an earlier run or measured now.

        Until then every round verifies the whole block. An earlier run counts only while plain
        decoding is as fast as it was then: one of the two met a busy machine otherwise.
        """
        if not self.model.has_draft:
            return
        file = paths.cache() / "costs.json"
        name = costs.key(self._params, self.model.device.description)
        known = costs.load(file, name)
        plain_ms = 1000.0 / (self.plain_tokens_per_s or self.measure_plain())
        if known is None or not 1 / _SAME_SPEED < known.plain / plain_ms < _SAME_SPEED:
            known = self.pair.measure_costs()
            costs.save(file, name, known)
        self.pair.set_costs(known)

    def measure_plain(self) -> float:
        """Rate of plain decoding here, tokens/s: median step of a short run."""
        self.pair.prompt(self.pair.tokenize(_PROBE_TEXT), drafting=False)
        steps: list[float] = []
        least, most = _PROBE_STEPS
        start = time.perf_counter()
        while len(steps) < most and (
            len(steps) < least or time.perf_counter() - start < _PROBE_SECONDS
        ):
            before = time.perf_counter()
            self.pair.round(0)
            steps.append(time.perf_counter() - before)
        self.pair.reset()
        self.plain_tokens_per_s = 1.0 / (median(steps) or 1.0)
        return self.plain_tokens_per_s

    def prompt_tokens(self, chat: Sequence[ChatMessage], think: bool) -> list[int]:
        return self.pair.tokenize(self._template.render(chat, think=think))

    def answer(
        self, request: int, chat: Sequence[ChatMessage], params: AskParams
    ) -> Iterator[Event]:
        """Events of one answer, the last of them `Finished`."""
        prompt = self._template.render(chat, think=params.think)
        tokens = self.pair.tokenize(prompt)
        run = _Run(self, request, tokens, params, thinking=begins_thinking(prompt))
        # The next turn renders this one without the opening of the answer: its reasoning
        # is dropped from the history. The state is kept at the last point both share.
        kept = self.pair.tokenize(self._template.render(chat, think=params.think, answer=False))
        yield from run.events(_common_length(tokens, kept))

    def control(
        self, chat: Sequence[ChatMessage], params: AskParams, plain: Sequence[int], at: int
    ) -> Control:
        """See `app.engine.control`."""
        rows = params.block or self.model.block
        return control(self.pair, self.prompt_tokens(chat, params.think), plain, at, rows)

    def piece(self, token: int) -> str:
        """A token's text for a tooltip; parts of characters come as U+FFFD."""
        return self.pair.token_bytes(token, special=True).decode("utf-8", "replace")

    def answer_text(self, params: AskParams, *, thinking: bool) -> AnswerText:
        return AnswerText(
            self.pair.token_bytes, self._think_open, self._think_close, thinking, params.stop
        )

    def _marker(self, text: str) -> int | None:
        ids = self.pair.tokenize(text)
        return ids[0] if len(ids) == 1 else None

    def _loaded(self, params: LoadParams, device: DeviceInfo, fallback: str) -> LoadedModel:
        info = self.pair.info
        return LoadedModel(
            name=info.name or params.target.stem,
            target_bytes=info.target_bytes,
            draft_bytes=info.draft_bytes,
            quantisation=info.quantisation,
            backend=device.kind,
            device=device,
            layers=info.n_layers,
            layers_on_device=info.n_layers_device,
            n_ctx=info.n_ctx,
            n_vocab=info.n_vocab,
            block=info.block,
            draft_device=info.draft_device if info.draft_device.name != device.name else None,
            fallback=fallback,
        )


@dataclass(slots=True)
class _Run:
    """The making of one answer."""

    session: Session
    request: int
    prompt: list[int]
    params: AskParams
    thinking: bool
    ids: list[int] = field(default_factory=list)
    totals: RoundTotals = field(default_factory=RoundTotals)
    reason: FinishReason | None = None
    reused: int = 0
    prefill_ms: float = 0.0
    seed: int = 0
    text: AnswerText = field(init=False)

    def __post_init__(self) -> None:
        seed = self.params.sampling.seed
        self.seed = secrets.randbits(64) if seed is None else seed
        self.text = self.session.answer_text(self.params, thinking=self.thinking)

    def events(self, keep: int) -> Iterator[Event]:
        try:
            if self.params.max_tokens == 0:
                self.reason = FinishReason.LENGTH
            else:
                yield from self._prefill(keep)
            while self.reason is None:
                yield self._round()
        except Cancelled:
            self.reason = FinishReason.CANCELLED
        tail = self.text.finish()
        if tail.text or tail.reasoning:
            yield Decoded(self.request, tail.text, tail.reasoning, None)
        yield Finished(self.request, self._answer())

    def _prefill(self, keep: int) -> Iterator[Event]:
        pair, params = self.session.pair, self.params
        start = time.perf_counter()
        first, self.reused = pair.prompt(
            self.prompt,
            keep=keep,
            drafting=self._drafting,
            verify=params.verify,
            sampling=params.sampling,
            seed=self.seed,
        )
        self.prefill_ms = (time.perf_counter() - start) * 1000
        yield Prefilled(self.request, len(self.prompt), self.reused, self.prefill_ms)
        piece, _ = self._take((first,))
        yield Decoded(self.request, piece.text, piece.reasoning, None)

    def _round(self) -> Event:
        room = self.params.max_tokens - len(self.ids)  # tokens this round may still give
        width = self.params.block or self.session.pair.info.block
        n_draft = max(0, min(width, room) - 1) if self._drafting else 0
        start = time.perf_counter()
        try:
            native = self.session.pair.round(n_draft, governed=self.params.block is None)
        except ContextFullError:
            self.reason = FinishReason.CONTEXT
            return Decoded(self.request, "", "", None)
        piece, used = self._take(native.emitted)
        record = self._record(native, used, time.perf_counter() - start)
        self.totals.add(record)
        return Decoded(self.request, piece.text, piece.reasoning, record)

    def _take(self, tokens: Sequence[int]) -> tuple[Piece, int]:
        """Adds tokens up to one that ends the answer; returns their text and number."""
        text = reasoning = ""
        used = 0
        for token in tokens:
            used += 1
            self.ids.append(token)
            if self.session.pair.is_end(token) or token in self.params.stop_tokens:
                self.reason = FinishReason.STOP
                break
            piece = self.text.feed(token)
            text, reasoning = text + piece.text, reasoning + piece.reasoning
            if piece.stopped:
                self.reason = FinishReason.STOP
                break
            if len(self.ids) == self.params.max_tokens:
                self.reason = FinishReason.LENGTH
                break
        return Piece(text, reasoning), used

    def _record(self, native: NativeRound, used: int, seconds: float) -> RoundRecord:
        piece = self.session.piece
        draft_ms = None if native.draft_us is None else native.draft_us / 1000
        verify_ms = native.verify_us / 1000
        return RoundRecord(
            drafted=tuple(piece(t) for t in native.drafted),
            accepted=used - 1,
            emitted=tuple(piece(t) for t in native.emitted[:used]),
            token_ids=native.emitted[:used],
            draft_ms=draft_ms,
            verify_ms=verify_ms,
            host_ms=max(0.0, seconds * 1000 - (draft_ms or 0.0) - verify_ms),
            reason=native.reason,
            syncs=native.syncs,
            graphs_run=native.graphs_run,
            graphs_rebuilt=native.graphs_rebuilt,
            bytes_to_host=native.bytes_to_host,
        )

    @property
    def _drafting(self) -> bool:
        return self.params.draft and self.session.model.has_draft

    def _answer(self) -> Answer:
        totals, model = self.totals, self.session.model
        rate, plain = totals.tokens_per_s, self.session.plain_tokens_per_s
        return Answer(
            text=self.text.text,
            reasoning=self.text.reasoning,
            token_ids=tuple(self.ids),
            finish_reason=self.reason or FinishReason.STOP,
            prompt_tokens=len(self.prompt),
            reused=self.reused,
            rounds=totals.rounds,
            drafted=totals.drafted,
            accepted=totals.accepted,
            accepted_per_round=tuple(totals.accepted_per_round),
            mean_accepted_length=totals.mean_accepted_length,
            tokens_per_s=rate,
            plain_tokens_per_s=plain,
            speedup=speedup(rate, plain),
            prefill_ms=self.prefill_ms,
            draft_ms=totals.draft_ms,
            verify_ms=totals.verify_ms,
            host_ms=totals.host_ms,
            syncs_per_round=totals.per_round(totals.syncs),
            graphs_run_per_round=totals.per_round(totals.graphs_run),
            graphs_rebuilt=totals.graphs_rebuilt if totals.rounds else None,
            bytes_to_host_per_round=totals.per_round(totals.bytes_to_host),
            backend=model.backend,
            device=model.device.description,
            seed=self.seed,
        )


def _name(device: DeviceInfo) -> str | None:
    return device.name if device.kind == "gpu" else None


def _common_length(a: Sequence[int], b: Sequence[int]) -> int:
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))
