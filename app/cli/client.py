"""One command to the engine at a time, and its answer."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from app.conversation import ChatMessage
from app.engine import (
    Answer,
    Ask,
    AskParams,
    Cancelled,
    Client,
    Command,
    Compare,
    Compared,
    Control,
    Decoded,
    DeviceInfo,
    Devices,
    Ending,
    Event,
    Failed,
    Finished,
    ListDevices,
    Load,
    Loaded,
    Loading,
    LoadParams,
    Measure,
    Measured,
    Shared,
)
from app.errors import EngineError

_POLL: Final = 0.2  # seconds; how soon Ctrl-C is seen where it cannot break a wait
_CANCEL_WITHIN: Final = 5.0  # seconds


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in an answer. `answer` is what there is of it, if the engine told."""

    def __init__(self, answer: Answer | None) -> None:
        super().__init__()
        self.answer = answer


class BlockingClient:
    """Waits for what it asks. Errors of the engine are raised here."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pending: deque[Event] = deque()  # Ctrl-C may come between two of a batch

    def devices(self) -> tuple[DeviceInfo, ...]:
        ending = self._ending(ListDevices())
        assert isinstance(ending, Devices)
        return ending.devices

    def load(self, params: LoadParams, on_progress: Callable[[float], None]) -> Loaded:
        def show(event: Event) -> None:
            if isinstance(event, Loading):
                on_progress(event.fraction)

        ending = self._ending(Load(params), show)
        assert isinstance(ending, Loaded)
        return ending

    def measure(self) -> None:
        """Returns when it is known how fast plain decoding is, and what rounds cost."""
        self._ending(Measure())

    def exact(self) -> bool | None:
        """Whether drafted text is plain text here; probes where that is not known yet."""
        ending = self._ending(Measure(exact=True))
        assert isinstance(ending, Measured)
        return ending.exact

    def ask(
        self,
        chat: Sequence[ChatMessage],
        params: AskParams,
        on_decoded: Callable[[Decoded], None] = lambda _: None,
    ) -> Answer:
        """The whole answer; its pieces go to `on_decoded` first. Raises `Interrupted`."""

        def show(event: Event) -> None:
            if isinstance(event, Decoded):
                on_decoded(event)

        request = self._client.submit(Ask(tuple(chat), params))
        try:
            ending = self._rest(request, show)
        except KeyboardInterrupt:
            self._client.cancel(request)
            raise Interrupted(self._cancelled(request)) from None
        assert isinstance(ending, Finished)
        return ending.answer

    def compare(
        self, chat: Sequence[ChatMessage], params: AskParams, plain: tuple[int, ...], at: int
    ) -> Control:
        """The control run where a drafted answer left the plain one at token `at`."""
        ending = self._ending(Compare(tuple(chat), params, plain, at))
        assert isinstance(ending, Compared)
        return ending.control

    def _ending(self, command: Command, show: Callable[[Event], None] = lambda _: None) -> Ending:
        return self._rest(self._client.submit(command), show)

    def _rest(self, request: int, show: Callable[[Event], None]) -> Ending:
        while True:
            for event in self._events(request, _POLL):
                if isinstance(event, Failed):
                    raise event.error
                if isinstance(event, Cancelled):
                    raise EngineError("The engine was closed.", remedy="Start it again.")
                if isinstance(event, Ending):
                    return event
                show(event)

    def _cancelled(self, request: int) -> Answer | None:
        """What there is of a cancelled answer, which comes soon or not at all."""
        deadline = time.monotonic() + _CANCEL_WITHIN
        while time.monotonic() < deadline:
            for event in self._events(request, _POLL):
                if isinstance(event, Ending):
                    return event.answer if isinstance(event, Finished) else None
        return None

    def _events(self, request: int, timeout: float) -> Iterator[Event]:
        """What came of `request`; of other requests there is only what was given up."""
        if not self._pending:
            self._pending.extend(self._client.wait(timeout))
        while self._pending:
            event = self._pending.popleft()
            if not isinstance(event, Shared) and event.request == request:
                yield event
