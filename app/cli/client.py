"""One command to the engine at a time, and its answer."""

from __future__ import annotations

import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from app.engine import (
    Answer,
    Ask,
    AskParams,
    Cancel,
    ChatMessage,
    Command,
    Compare,
    Compared,
    Control,
    Decoded,
    DeviceInfo,
    Event,
    Failed,
    Finished,
    Load,
    Loaded,
    Loading,
    LoadParams,
    PlainMeasured,
)
from app.errors import SlipstreamError

_log = logging.getLogger(__name__)

_POLL: Final = 0.2  # seconds; how soon Ctrl-C is seen where it cannot break a wait
_CANCEL_WITHIN: Final = 5.0  # seconds


class EngineDoor(Protocol):
    """What is used of `Engine` and `FakeEngine`."""

    def submit(self, command: Command) -> None: ...

    def wait(self, timeout: float) -> list[Event]: ...

    def devices(self) -> tuple[DeviceInfo, ...]: ...

    def close(self, timeout: float = ...) -> None: ...


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in an answer. `answer` is what there is of it, if the engine told."""

    def __init__(self, answer: Answer | None) -> None:
        super().__init__()
        self.answer = answer


class Client:
    """Waits for what it asks. Errors of the engine are raised here."""

    def __init__(self, engine: EngineDoor) -> None:
        self._engine = engine
        self._requests = itertools.count(1)
        self._pending: deque[Event] = deque()

    def has_gpu(self) -> bool:
        return any(device.kind == "gpu" and device.usable for device in self._engine.devices())

    def load(self, params: LoadParams, on_progress: Callable[[float], None]) -> Loaded:
        """Returns when the rate of plain decoding is measured too, or cannot be.

        Otherwise it would be luck whether an answer that is asked for at once knows
        its speed-up.
        """
        loaded: Loaded | None = None
        try:
            for event in self._events(Load(next(self._requests), params)):
                if isinstance(event, Loading):
                    on_progress(event.fraction)
                elif isinstance(event, Loaded):
                    loaded = event
                elif isinstance(event, PlainMeasured) and loaded is not None:
                    return loaded
        except SlipstreamError as error:
            if loaded is None:
                raise
            _log.warning("The plain rate could not be measured: %s", error)
            return loaded
        raise AssertionError("a load ends with an event")

    def ask(
        self,
        chat: Sequence[ChatMessage],
        params: AskParams,
        on_decoded: Callable[[Decoded], None] = lambda _: None,
    ) -> Answer:
        """The whole answer; its pieces go to `on_decoded` first. Raises `Interrupted`."""
        command = Ask(next(self._requests), tuple(chat), params)
        try:
            for event in self._events(command):
                if isinstance(event, Decoded):
                    on_decoded(event)
                elif isinstance(event, Finished):
                    return event.answer
        except KeyboardInterrupt:
            self._engine.submit(Cancel(command.request))
            raise Interrupted(self._rest(command.request)) from None
        raise AssertionError("an answer ends with an event")

    def compare(
        self, chat: Sequence[ChatMessage], params: AskParams, plain: tuple[int, ...], at: int
    ) -> Control:
        """The control run where a drafted answer left the plain one at token `at`."""
        for event in self._events(Compare(next(self._requests), tuple(chat), params, plain, at)):
            if isinstance(event, Compared):
                return event.control
        raise AssertionError("a comparison ends with an event")

    def _events(self, command: Command) -> Iterator[Event]:
        self._engine.submit(command)
        while True:
            while self._pending:
                event = self._pending.popleft()
                if event.request != command.request:
                    continue
                if isinstance(event, Failed):
                    raise event.error
                yield event
            self._pending.extend(self._engine.wait(_POLL))

    def _rest(self, request: int) -> Answer | None:
        """The answer of a cancelled request, which comes soon or not at all."""
        deadline = time.monotonic() + _CANCEL_WITHIN
        while time.monotonic() < deadline:
            while self._pending:
                event = self._pending.popleft()
                if event.request == request and isinstance(event, Finished):
                    return event.answer
                if event.request == request and isinstance(event, Failed):
                    return None
            self._pending.extend(self._engine.wait(_POLL))
        return None
