"""A scripted engine for work on the window: same door, no model, no thread.

It answers with text it is given, in rounds whose accepted counts it is given, and goes
one event further whenever a client drains, so that a test decides when time passes.
Shipped and tested like the rest, because tests of the window stand on it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from app.binding import DeviceInfo, preferred_gpu
from app.conversation import ChatMessage, Role
from app.engine.door import Client
from app.engine.messages import (
    Answer,
    Ask,
    Cancelled,
    Command,
    Compare,
    Compared,
    Control,
    Count,
    Counted,
    Decoded,
    Devices,
    Event,
    ExactnessProbed,
    Failed,
    Finished,
    FinishReason,
    ListDevices,
    Load,
    Loaded,
    LoadedModel,
    Loading,
    Measure,
    Measured,
    ModelChanged,
    PlainMeasured,
    Prefilled,
    Reading,
    ThinkingEnd,
    Unload,
    Unloaded,
)
from app.engine.params import Backend
from app.engine.plain import Plain
from app.engine.stats import Origin, Pace, Rest, RoundRecord, RoundTally
from app.engine.streams import Streams, never_begun
from app.errors import EngineError, SlipstreamError

FAKE_CPU: Final = DeviceInfo("CPU", "Scripted CPU", "cpu", 16 << 30, 8 << 30, True, "", "cpu")
FAKE_GPU: Final = DeviceInfo("GPU0", "Scripted GPU", "gpu", 8 << 30, 6 << 30, True, "", "cuda")

_PREFILL_MS: Final = 4.0
_READ_AT_ONCE: Final = 2048


@dataclass(slots=True)
class Script:
    """What the fake answers. `accepted` is repeated as long as there is text."""

    text: str = "A block of tokens is drafted in one pass and verified in one pass."
    reasoning: str = ""
    accepted: tuple[int, ...] = (5, 2, 7, 0, 4)
    block: int = 8
    round_ms: float = 10.0  # of one that drafts
    control: Control = field(default_factory=lambda: Control(gap=1.0, spread=0.0, flips=False))
    plain_tokens_per_s: float | None = 200.0  # None: not measured
    reason: FinishReason = FinishReason.STOP
    error: SlipstreamError | None = None
    load_error: SlipstreamError | None = None
    measure_error: SlipstreamError | None = None
    exact: bool = True
    origin: Origin = Origin.DRAFTER  # of every draft
    devices_error: SlipstreamError | None = None


@dataclass(slots=True)
class FakeEngine:
    """The door of `Engine`. A drain gives up to `batch` events of the client's."""

    script: Script = field(default_factory=Script)
    device_list: tuple[DeviceInfo, ...] = (FAKE_CPU, FAKE_GPU)
    batch: int = 1
    commands: list[Command] = field(default_factory=list)  # in the order they came
    closed: bool = False
    _streams: Streams = field(default_factory=Streams)
    _waiting: deque[tuple[int, Command]] = field(default_factory=deque)
    _running: tuple[int, Iterator[Event]] | None = None
    _errands: deque[Callable[[], Event]] = field(default_factory=deque)  # what is still to be told
    _stop: bool = False
    _answer_now: bool = False
    _model: LoadedModel | None = None

    def client(self) -> Client:
        return _FakeClient(self, self._streams)

    def close(self, timeout: float = 5.0) -> None:
        self.closed = True
        while self._waiting:
            self._streams.deliver(never_begun(*self._waiting.popleft()))
        self._stop = True
        while self._running:
            self.step()
        self._set_model(None)

    @property
    def asked(self) -> list[Ask]:
        """The questions, in the order they came."""
        return [command for command in self.commands if isinstance(command, Ask)]

    @property
    def loads(self) -> list[Load]:
        return [command for command in self.commands if isinstance(command, Load)]

    # --- for the clients, and for tests that bend what happens ---

    def submit(self, request: int, command: Command) -> None:
        self.commands.append(command)
        if self.closed:
            self._streams.deliver(never_begun(request, command))
        else:
            self._waiting.append((request, command))

    def cancel(self, request: int) -> None:
        if self._running and self._running[0] == request:
            self._stop = True
        for waiting in [w for w in self._waiting if w[0] == request]:
            self._waiting.remove(waiting)
            self._streams.deliver(never_begun(*waiting))

    def answer_now(self, request: int) -> None:
        self._answer_now |= self._running is not None and self._running[0] == request

    def lose(self, error: SlipstreamError) -> None:
        """What happens when the device of the loaded model is lost."""
        self._model = None
        self._errands.clear()
        self._streams.deliver(ModelChanged(None, error))

    def step(self) -> bool:
        """Makes the next event and delivers it; False where nothing is left to do."""
        for waiting in [w for w in self._waiting if self._running and isinstance(w[1], Count)]:
            self._waiting.remove(waiting)  # a count waits for no answer's end
            for counted in self.events(*waiting):
                self._streams.deliver(counted)
        if self._running is None:
            if not self._waiting:
                return self._run_errand()
            request, command = self._waiting.popleft()
            self._stop = self._answer_now = False
            self._running = request, self.events(request, command)
        event = next(self._running[1], None)
        if event is None:
            self._running = None
            return self.step()
        self._streams.deliver(event)
        return True

    def events(self, request: int, command: Command) -> Iterator[Event]:
        match command:
            case Load():
                return self._load(request, command)
            case Ask():
                return self._ask(request, command)
            case Unload():
                return self._unload(request)
            case ListDevices():
                return self._list_devices(request)
            case Measure():
                return self._measure(request, command)
            case Compare():
                return iter((Compared(request, self.script.control),))
            case Count():
                return self._count(request, command)

    # --- the script ---

    def _load(self, request: int, command: Load) -> Iterator[Event]:
        self._set_model(None)
        yield Loading(request, 0.5)
        if self._stop:
            yield Cancelled(request)
            return
        if error := self.script.load_error:
            yield ModelChanged(None, error)
            yield Failed(request, error)
            return
        gpu = preferred_gpu(self.device_list)
        on_gpu = gpu is not None and gpu.usable and command.params.backend is not Backend.CPU
        model = LoadedModel(
            name=command.params.target.stem,
            target_bytes=16_000_000,
            draft_bytes=6_000_000,
            quantisation="BF16",
            backend="gpu" if on_gpu else "cpu",
            device=gpu if gpu and on_gpu else self.device_list[0],
            layers=8,
            layers_on_device=8,
            n_ctx=command.params.n_ctx or 4096,
            n_vocab=4096,
            block=self.script.block if command.params.draft else 0,
        )
        self._set_model(model)
        yield Loaded(request, model, seconds=0.2)

    def _unload(self, request: int) -> Iterator[Event]:
        self._set_model(None)
        yield Unloaded(request)

    def _list_devices(self, request: int) -> Iterator[Event]:
        if error := self.script.devices_error:
            yield Failed(request, error)
        else:
            yield Devices(request, self.device_list)

    def _measure(self, request: int, command: Measure) -> Iterator[Event]:
        if self._model is None:
            yield Failed(request, _no_model())
        elif error := self.script.measure_error:
            yield Failed(request, error)
        else:
            while self._errands and (command.exact or self._errands[0] == self._measure_plain):
                yield self._errands.popleft()()
            yield Measured(request, self._model.exact)

    def _count(self, request: int, command: Count) -> Iterator[Event]:
        if self._model is None:
            yield Failed(request, _no_model())
        else:
            yield Counted(request, _prompt_tokens(command.chat))

    def _run_errand(self) -> bool:
        if not self._errands:
            return False
        self._streams.deliver(self._errands.popleft()())
        return True

    def _measure_plain(self) -> Event:
        if error := self.script.measure_error:
            self._errands.clear()
            return PlainMeasured(Plain(), error)
        return PlainMeasured(Plain(self.script.plain_tokens_per_s))

    def _probe_exact(self) -> Event:
        assert self._model
        self._model = replace(self._model, exact=self.script.exact)
        return ExactnessProbed(self.script.exact)

    def _set_model(self, model: LoadedModel | None) -> None:
        if model or self._model:
            self._streams.deliver(ModelChanged(model))
        self._model = model
        self._errands.clear()
        if model:
            self._errands.extend((self._measure_plain, self._probe_exact))

    def _ask(self, request: int, command: Ask) -> Iterator[Event]:
        if self._model is None:
            yield Failed(request, _no_model())
            return
        prompt = _prompt_tokens(command.chat)
        for done in range(_READ_AT_ONCE, prompt, _READ_AT_ONCE):
            yield Reading(request, done, prompt)
            if self._stop:
                yield Finished(request, Answer.empty(FinishReason.CANCELLED))
                return
        yield Prefilled(request, prompt, 0, _PREFILL_MS)
        if self.script.error is not None:
            yield Failed(request, self.script.error)
            return
        yield from self._rounds(request, command, prompt, self._model)

    def _rounds(
        self, request: int, command: Ask, prompt: int, model: LoadedModel
    ) -> Iterator[Event]:
        last = command.chat[-1]
        begun = last if last.role is Role.ASSISTANT else ChatMessage(Role.ASSISTANT, "")
        said = self.script.reasoning.removeprefix(begun.reasoning)
        thinking = _pieces(said) if command.params.think and not begun.content else []
        end: ThinkingEnd | None = None
        budget = command.params.think_budget
        if budget is not None and budget < len(thinking):
            thinking, end = thinking[:budget], ThinkingEnd.BUDGET
        pieces = thinking + _pieces(self.script.text.removeprefix(begun.content))
        tally, pace, rest = RoundTally(), Pace(), Rest()
        text = reasoning = ""
        ids: list[int] = []
        reason = self.script.reason
        rounds = 0
        record: RoundRecord | None = None
        clock = time.monotonic() + _PREFILL_MS / 1000  # what the script says has passed by then
        while len(ids) < len(pieces):
            if self._stop:
                reason = FinishReason.CANCELLED
                break
            if self._answer_now and len(ids) < len(thinking):
                pieces, end = pieces[: len(ids)] + pieces[len(thinking) :], ThinkingEnd.ASKED
                thinking = thinking[: len(ids)]
            if ids:
                record = self._round(pieces, len(ids), rounds, command.params.draft)
                for counted in (tally, pace, rest):
                    counted.add(record)
                rounds += 1
                clock += record.total_ms / 1000
            new = record.emitted if record else (pieces[0],)
            new_thinking = "".join(new[: max(0, len(thinking) - len(ids))])
            new_text = "".join(new[max(0, len(thinking) - len(ids)) :])
            ids += range(len(ids), len(ids) + len(new))
            text, reasoning = text + new_text, reasoning + new_thinking
            yield Decoded(request, new_text, new_thinking, record, max(clock, time.monotonic()))
        answer = Answer(
            text=text,
            reasoning=reasoning,
            token_ids=tuple(ids),
            finish_reason=reason,
            prompt_tokens=prompt,
            reused=0,
            prefill_ms=_PREFILL_MS,
            totals=tally.totals,
            plain=Plain(self.script.plain_tokens_per_s),
            backend=model.backend,
            device=model.device.description,
            seed=command.params.sampling.seed,
            thinking_end=end,
            outside={0: pieces[0]} if ids else {},
            pace=pace.change,
            paused=rest.ever,
            rests=rest.now,
        )
        yield Finished(request, answer, max(clock, time.monotonic()))

    def _round(self, pieces: list[str], at: int, index: int, draft: bool) -> RoundRecord:
        width = max(0, self.script.block - 1) if draft else 0
        want = self.script.accepted[index % len(self.script.accepted)]
        accepted = min(want, width, len(pieces) - at - 1)
        emitted = tuple(pieces[at : at + accepted + 1])
        drafted = tuple((pieces[at : at + accepted] + [" …"] * width)[:width])
        plain = self.script.plain_tokens_per_s
        quarter = (1000 / plain if plain and not drafted else self.script.round_ms) / 4
        ids = tuple(range(at, at + accepted + 1))
        return RoundRecord(
            drafted,
            accepted,
            emitted,
            ids,
            quarter,
            2 * quarter,
            quarter,
            origin=self.script.origin,
        )


class _FakeClient:
    def __init__(self, engine: FakeEngine, streams: Streams) -> None:
        self._engine, self._streams = engine, streams
        self._stream = streams.open()

    def submit(self, command: Command) -> int:
        request = self._streams.new_request(self._stream)
        self._engine.submit(request, command)
        return request

    def cancel(self, request: int) -> None:
        if self._streams.owns(self._stream, request):
            self._engine.cancel(request)

    def answer_now(self, request: int) -> None:
        if self._streams.owns(self._stream, request):
            self._engine.answer_now(request)

    def drain(self) -> list[Event]:
        events = self._stream.drain()
        while len(events) < self._engine.batch and self._engine.step():
            events += self._stream.drain()
        return events

    def wait(self, timeout: float) -> list[Event]:
        """As `drain`: here there is nothing to wait for."""
        return self.drain()

    def close(self) -> None:
        for request in self._streams.close(self._stream):
            self._engine.cancel(request)


def _prompt_tokens(chat: tuple[ChatMessage, ...]) -> int:
    """A word a token, and four for each message."""
    return sum(len(m.content.split()) + 4 for m in chat)


def _no_model() -> EngineError:
    return EngineError("No model is loaded.", remedy="Choose a model first.")


def _pieces(text: str) -> list[str]:
    words = text.split(" ")
    return [w if i == 0 else f" {w}" for i, w in enumerate(words)] if text else []
