"""Where the engine's events become Qt signals: nothing else in the window drains it.

A timer drains, so that the rate of arrival never drives the rate of painting. Rounds
that came since the last turn go on as one signal. Where handling a turn takes longer
than `SLOW`, the interval doubles, up to `LONGEST`, and comes back when turns are quick.
"""

from __future__ import annotations

import time
from typing import Final

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from app.conversation import ChatMessage
from app.engine import (
    Ask,
    AskParams,
    Command,
    Decoded,
    Devices,
    Ending,
    EngineDoor,
    Event,
    Failed,
    Finished,
    ListDevices,
    Load,
    Loaded,
    Loading,
    LoadParams,
    PlainMeasured,
    Prefilled,
    RoundRecord,
)

SHORTEST: Final = 16
LONGEST: Final = 132
IDLE: Final = 100
"""Milliseconds between two turns: while work is open, under load, and otherwise."""

SLOW: Final = 0.012
"""Seconds of a turn from which on the interval doubles."""


class EngineBridge(QObject):
    loading = Signal(float)
    loaded = Signal(int, object)  # request, LoadedModel
    plain_measured = Signal(float)
    prefilled = Signal(int, object)  # request, Prefilled
    decoded = Signal(int, str, str, list)  # request, text, reasoning, RoundRecords
    finished = Signal(int, object)  # request, Answer
    failed = Signal(int, object)  # request, SlipstreamError
    devices_found = Signal(tuple)  # DeviceInfos

    def __init__(self, engine: EngineDoor, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._client = engine.client()
        self._open: set[int] = set()
        self._timer = QTimer(self, interval=IDLE)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.drain)
        self._timer.start()

    @property
    def interval(self) -> int:
        return self._timer.interval()

    def load(self, params: LoadParams) -> int:
        return self._submit(Load(params))

    def ask(self, chat: tuple[ChatMessage, ...], params: AskParams) -> int:
        return self._submit(Ask(chat, params))

    def cancel(self, request: int) -> None:
        self._client.cancel(request)

    def list_devices(self) -> int:
        return self._submit(ListDevices())

    def close(self) -> None:
        self._timer.stop()
        self._engine.close()

    def drain(self) -> None:
        """Hand on what came since the last turn, oldest first."""
        began = time.perf_counter()
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
                together.append(following)
                at += 1
            self._tell_decoded(together)
        self._pace(time.perf_counter() - began)

    def _tell_decoded(self, events: list[Decoded]) -> None:
        text = "".join(e.text for e in events)
        reasoning = "".join(e.reasoning for e in events)
        rounds: list[RoundRecord] = [e.round for e in events if e.round is not None]
        self.decoded.emit(events[0].request, text, reasoning, rounds)

    def _tell(self, event: Event) -> None:
        if isinstance(event, Ending):
            self._open.discard(event.request)
        match event:
            case Loading():
                self.loading.emit(event.fraction)
            case Loaded():
                self.loaded.emit(event.request, event.model)
            case PlainMeasured() if event.tokens_per_s is not None:
                self.plain_measured.emit(event.tokens_per_s)
            case Prefilled():
                self.prefilled.emit(event.request, event)
            case Finished():
                self.finished.emit(event.request, event.answer)
            case Devices():
                self.devices_found.emit(event.devices)
            case Failed():
                self.failed.emit(event.request, event.error)

    def _pace(self, seconds: float) -> None:
        if not self._open:
            self._timer.setInterval(IDLE)
        elif seconds > SLOW:
            self._timer.setInterval(min(LONGEST, max(SHORTEST, self.interval) * 2))
        elif self.interval > SHORTEST:
            self._timer.setInterval(max(SHORTEST, self.interval // 2))

    def _submit(self, command: Command) -> int:
        request = self._client.submit(command)
        self._open.add(request)
        self._timer.setInterval(SHORTEST)
        return request
