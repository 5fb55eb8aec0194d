"""A scripted engine for work on the window: same door, no model, no thread.

It answers with text it is given, in rounds whose accepted counts it is given, one
round for each `drain`, so that a test decides when time passes. Shipped and tested
like the rest, because tests of the window stand on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from app.engine.messages import (
    Answer,
    Ask,
    Cancel,
    Command,
    Compare,
    Compared,
    Control,
    Decoded,
    DeviceInfo,
    Event,
    Failed,
    Finished,
    FinishReason,
    Load,
    Loaded,
    LoadedModel,
    Loading,
    PlainMeasured,
    Prefilled,
    Unload,
    Unloaded,
)
from app.engine.params import Backend
from app.engine.stats import RoundRecord, RoundTotals, speedup, tokens_per_second
from app.errors import EngineError, SlipstreamError

FAKE_CPU = DeviceInfo("CPU", "Scripted CPU", "cpu", 16 << 30, 8 << 30, True)
FAKE_GPU = DeviceInfo("GPU0", "Scripted GPU", "gpu", 8 << 30, 6 << 30, True)


@dataclass(slots=True)
class Script:
    """What the fake answers. `accepted` is repeated as long as there is text."""

    text: str = "A block of tokens is drafted in one pass and verified in one pass."
    reasoning: str = ""
    accepted: tuple[int, ...] = (5, 2, 7, 0, 4)
    block: int = 8
    round_ms: float = 10.0
    control: Control = field(default_factory=lambda: Control(gap=1.0, spread=0.0, flips=False))
    plain_tokens_per_s: float = 60.0
    error: SlipstreamError | None = None
    load_error: SlipstreamError | None = None


@dataclass(slots=True)
class FakeEngine:
    """Same public surface as `Engine`: submit, drain, wait, devices, close."""

    script: Script = field(default_factory=Script)
    device_list: tuple[DeviceInfo, ...] = (FAKE_CPU, FAKE_GPU)
    asked: list[Ask] = field(default_factory=list)
    _running: deque[tuple[int, Iterator[Event]]] = field(default_factory=deque)
    _model: LoadedModel | None = None
    _cancelled: set[int] = field(default_factory=set)
    closed: bool = False

    def submit(self, command: Command) -> None:
        if isinstance(command, Cancel):
            self._cancelled.add(command.request)
            return
        steps: dict[type, Callable[..., Iterator[Event]]] = {
            Load: self._load,
            Ask: self._ask,
            Unload: self._unload,
            Compare: self._compare,
        }
        self._running.append((command.request, steps[type(command)](command)))

    def drain(self) -> list[Event]:
        """The events since the last call, oldest first: here, the next one."""
        while self._running:
            event = next(self._running[0][1], None)
            if event is not None:
                return [event]
            self._running.popleft()
        return []

    def wait(self, timeout: float) -> list[Event]:
        """Like `drain`, after waiting for an event; here there is nothing to wait for."""
        return self.drain()

    def devices(self) -> tuple[DeviceInfo, ...]:
        return self.device_list

    def close(self, timeout: float = 5.0) -> None:
        self._running.clear()
        self.closed = True

    def _load(self, command: Load) -> Iterator[Event]:
        yield Loading(command.request, 0.5)
        if self.script.load_error is not None:
            yield Failed(command.request, self.script.load_error)
            return
        gpus = [d for d in self.device_list if d.kind == "gpu" and d.usable]
        on_gpu = bool(gpus) and command.params.backend is not Backend.CPU
        self._model = LoadedModel(
            name=command.params.target.stem,
            target_bytes=16_000_000,
            draft_bytes=6_000_000,
            quantisation="BF16",
            backend="gpu" if on_gpu else "cpu",
            device=gpus[0] if on_gpu else self.device_list[0],
            layers=8,
            layers_on_device=8,
            n_ctx=command.params.n_ctx,
            n_vocab=4096,
            block=self.script.block if command.params.draft else 0,
        )
        yield Loaded(command.request, self._model, seconds=0.2)
        yield PlainMeasured(command.request, self.script.plain_tokens_per_s)

    def _unload(self, command: Unload) -> Iterator[Event]:
        self._model = None
        yield Unloaded(command.request)

    def _compare(self, command: Compare) -> Iterator[Event]:
        yield Compared(command.request, self.script.control)

    def _ask(self, command: Ask) -> Iterator[Event]:
        self.asked.append(command)
        if self._model is None:
            error = EngineError("No model is loaded.", remedy="Choose a model first.")
            yield Failed(command.request, error)
            return
        prompt = sum(len(m.content.split()) + 4 for m in command.chat)
        yield Prefilled(command.request, prompt, 0, 4.0)
        if self.script.error is not None:
            yield Failed(command.request, self.script.error)
            return
        yield from self._rounds(command, prompt, self._model)

    def _rounds(self, command: Ask, prompt: int, model: LoadedModel) -> Iterator[Event]:
        thinking = _pieces(self.script.reasoning) if command.params.think else []
        pieces = thinking + _pieces(self.script.text)
        totals, text, reasoning = RoundTotals(), "", ""
        ids: list[int] = []
        reason = FinishReason.STOP
        accepted = 0
        record: RoundRecord | None = None
        while len(ids) < len(pieces):
            if command.request in self._cancelled:
                reason = FinishReason.CANCELLED
                break
            if ids:
                record = self._round(pieces, len(ids), accepted, command.params.draft)
                totals.add(record)
                accepted += 1
            new = record.emitted if record else (pieces[0],)
            new_thinking = "".join(new[: max(0, len(thinking) - len(ids))])
            new_text = "".join(new[max(0, len(thinking) - len(ids)) :])
            ids += range(len(ids), len(ids) + len(new))
            text, reasoning = text + new_text, reasoning + new_thinking
            yield Decoded(command.request, new_text, new_thinking, record)
        plain = self.script.plain_tokens_per_s
        rate = tokens_per_second(len(ids) - 1, totals.rounds * self.script.round_ms)
        answer = Answer(
            text=text,
            reasoning=reasoning,
            token_ids=tuple(ids),
            finish_reason=reason,
            prompt_tokens=prompt,
            reused=0,
            rounds=totals.rounds,
            drafted=totals.drafted,
            accepted=totals.accepted,
            accepted_per_round=tuple(totals.accepted_per_round),
            mean_accepted_length=totals.mean_accepted_length,
            tokens_per_s=rate,
            plain_tokens_per_s=plain,
            speedup=speedup(rate, plain),
            prefill_ms=4.0,
            draft_ms=totals.draft_ms,
            verify_ms=totals.verify_ms,
            host_ms=totals.host_ms,
            syncs_per_round=None,
            graphs_run_per_round=None,
            graphs_rebuilt=None,
            bytes_to_host_per_round=None,
            backend=model.backend,
            device=model.device.description,
            seed=command.params.sampling.seed,
        )
        yield Finished(command.request, answer)

    def _round(self, pieces: list[str], at: int, index: int, draft: bool) -> RoundRecord:
        width = self.script.block - 1 if draft else 0
        want = self.script.accepted[index % len(self.script.accepted)]
        accepted = min(want, width, len(pieces) - at - 1)
        emitted = tuple(pieces[at : at + accepted + 1])
        drafted = tuple((pieces[at : at + accepted] + [" …"] * width)[:width])
        third = self.script.round_ms / 4
        ids = tuple(range(at, at + accepted + 1))
        return RoundRecord(drafted, accepted, emitted, ids, third, 2 * third, third)


def _pieces(text: str) -> list[str]:
    words = text.split(" ")
    return [w if i == 0 else f" {w}" for i, w in enumerate(words)] if text else []
