"""Where the engine's events become Qt signals: nothing else in the window drains it.

Whoever asks gets an object of its own for the request, with its signals and `cancel`; what
concerns everybody (which model is loaded, how fast it decodes plainly, whether drafted text is
plain text) is told by the bridge's own signals.

A timer drains, so that the rate of arrival never drives the rate of painting. Rounds
that came since the last turn go on as one signal. What a turn costs, with the layout and the
painting that follow from it, sets how soon the next one comes: so the window takes about
`SHARE` of a core and no more, however fast the text comes and however dear it is to show.
"""

from __future__ import annotations

import time
from typing import Final, TypeVar

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from app.conversation import ChatMessage
from app.engine import (
    Ask,
    AskParams,
    Cancelled,
    Command,
    Compare,
    Compared,
    Count,
    Counted,
    Decoded,
    Devices,
    Ending,
    EngineDoor,
    Event,
    ExactnessProbed,
    Failed,
    Finished,
    ListDevices,
    Load,
    Loaded,
    Loading,
    LoadParams,
    ModelChanged,
    PlainMeasured,
    Prefilled,
    Reading,
    RoundRecord,
)

SHORTEST: Final = 16
LONGEST: Final = 150
IDLE: Final = 100
ASLEEP: Final = 1_000
"""Milliseconds between two turns: while work is open, under load, when it has ended, and
where nothing has come for a while."""

SHARE: Final = 0.15
"""Of a core, that this thread is to take while text comes."""


class Request(QObject):
    """One thing asked of the engine. It ends with one signal: finished, failed or cancelled.

    It belongs to the bridge, which drops it when it has ended.
    """

    finished = Signal(object)
    failed = Signal(object)  # SlipstreamError
    cancelled = Signal()

    def __init__(self, bridge: EngineBridge, number: int) -> None:
        super().__init__(bridge)
        self._bridge, self._number = bridge, number

    def cancel(self) -> None:
        """Ask for a soon end. What comes until then is told as ever."""
        self._bridge._cancel(self._number)

    def abandon(self) -> None:
        """Cancel, and tell nothing any more, not even the end."""
        self.cancel()
        self.blockSignals(True)


class LoadRequest(Request):
    """`finished` brings a `LoadedModel`."""

    progressed = Signal(float)


class Reply(Request):
    """`finished` brings an `Answer`, also where it was cancelled."""

    reading = Signal(object)  # Reading
    prefilled = Signal(object)  # Prefilled
    decoded = Signal(str, str, list)  # text, reasoning, RoundRecords
    at = 0.0
    """When what is being told came about, in seconds of `time.monotonic`; of several rounds, the
    first of them."""

    def answer_now(self) -> None:
        """Have it think no more."""
        self._bridge._answer_now(self._number)


R = TypeVar("R", bound=Request)


class EngineBridge(QObject):
    model_changed = Signal(object)  # LoadedModel, or None
    model_lost = Signal(object)  # SlipstreamError: it is gone, and nobody asked for that
    plain_measured = Signal(object)  # Plain, with a rate
    reading = Signal(object)  # Reading of whatever prompt is being read; None: none is any more
    exactness_probed = Signal(bool)

    def __init__(self, engine: EngineDoor, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._client = engine.client()
        self._requests: dict[int, Request] = {}
        self._spent = time.thread_time()  # by this thread, when the last turn began
        self._timer = QTimer(self, interval=IDLE)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.drain)
        self._timer.start()

    @property
    def interval(self) -> int:
        return self._timer.interval()

    def load(self, params: LoadParams) -> LoadRequest:
        return self._submit(Load(params), LoadRequest)

    def ask(self, chat: tuple[ChatMessage, ...], params: AskParams) -> Reply:
        return self._submit(Ask(chat, params), Reply)

    def count(self, chat: tuple[ChatMessage, ...], think: bool) -> Request:
        """`finished` brings the tokens of the prompt for `chat`."""
        return self._submit(Count(chat, think), Request)

    def compare(
        self, chat: tuple[ChatMessage, ...], params: AskParams, plain: tuple[int, ...], at: int
    ) -> Request:
        """`finished` brings the `Control` of where a drafted answer left the plain one."""
        return self._submit(Compare(chat, params, plain, at), Request)

    def devices(self) -> Request:
        """`finished` brings a tuple of `DeviceInfo`."""
        return self._submit(ListDevices(), Request)

    def close(self) -> None:
        """End the engine; the ends of what it was doing are told."""
        self._timer.stop()
        try:
            self._engine.close()
        finally:
            self.drain()
            self._timer.stop()

    def drain(self) -> None:
        """Hand on what came since the last turn, oldest first."""
        before, self._spent = self._spent, time.thread_time()
        events = self._client.drain()
        at = 0
        while at < len(events):
            event = events[at]
            at += 1
            if not isinstance(event, Decoded):
                self._tell(event)
                continue
            together = [event]
            while at < len(events):
                following = events[at]
                if not isinstance(following, Decoded) or following.request != event.request:
                    break
                if following.text and together[-1].reasoning:  # when it began is of its own
                    break
                together.append(following)
                at += 1
            self._tell_decoded(together)
        self._pace(self._spent - before, bool(events))

    def _tell_decoded(self, events: list[Decoded]) -> None:
        reply = self._requests[events[0].request]
        assert isinstance(reply, Reply)
        text = "".join(e.text for e in events)
        reasoning = "".join(e.reasoning for e in events)
        reply.at = events[0].at
        rounds: list[RoundRecord] = [e.round for e in events if e.round is not None]
        reply.decoded.emit(text, reasoning, rounds)

    def _tell(self, event: Event) -> None:
        match event:
            case ModelChanged():
                self.model_changed.emit(event.model)
                loading = any(isinstance(r, LoadRequest) for r in self._requests.values())
                if event.error is not None and not loading:  # else the load tells of it
                    self.model_lost.emit(event.error)
            case PlainMeasured():
                if event.plain.tokens_per_s is not None:
                    self.plain_measured.emit(event.plain)
            case ExactnessProbed():
                self.exactness_probed.emit(event.exact)
            case _:
                request = self._requests[event.request]
                self._tell_request(request, event)
                if isinstance(event, Ending):
                    if isinstance(request, Reply):  # however it ended
                        self.reading.emit(None)
                    self._requests.pop(event.request).deleteLater()

    def _tell_request(self, request: Request, event: Event) -> None:
        match request, event:
            case LoadRequest(), Loading():
                request.progressed.emit(event.fraction)
            case Reply(), Reading():
                request.reading.emit(event)
                self.reading.emit(event)
            case Reply(), Prefilled():
                request.prefilled.emit(event)
                self.reading.emit(None)
            case _, Loaded():
                request.finished.emit(event.model)
            case Reply(), Finished():
                request.at = event.at
                request.finished.emit(event.answer)
            case _, Devices():
                request.finished.emit(event.devices)
            case _, Counted():
                request.finished.emit(event.tokens)
            case _, Compared():
                request.finished.emit(event.control)
            case _, Failed():
                request.failed.emit(event.error)
            case _, Cancelled():
                request.cancelled.emit()

    def _pace(self, seconds: float, came: bool) -> None:
        """Set the interval, after a turn that came to `seconds` of this thread's time."""
        if not self._requests:
            usual = IDLE if came or self.interval < IDLE else min(ASLEEP, self.interval * 2)
            if usual != self.interval:
                self._timer.setInterval(usual)
        elif not any(isinstance(r, Reply) for r in self._requests.values()):
            # Nothing streams: what this thread did meanwhile is not the showing of text, and the
            # end of a load need not wait until that is paid for.
            if self.interval != SHORTEST:
                self._timer.setInterval(SHORTEST)
        else:
            wanted = max(SHORTEST, min(LONGEST, round(seconds * 1000 / SHARE)))
            usual = wanted if wanted > self.interval else (self.interval + wanted) // 2
            if abs(usual - self.interval) > self.interval // 8:  # setting it begins it anew
                self._timer.setInterval(usual)

    def _submit(self, command: Command, kind: type[R]) -> R:
        number = self._client.submit(command)
        request = self._requests[number] = kind(self, number)
        self._timer.setInterval(SHORTEST)
        return request

    def _answer_now(self, number: int) -> None:
        self._client.answer_now(number)

    def _cancel(self, number: int) -> None:
        self._client.cancel(number)  # one that has ended is left alone
