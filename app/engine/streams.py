"""Who asked what, and so which event goes to whom."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading

from app.engine.messages import (
    Answer,
    Ask,
    Cancelled,
    Command,
    Ending,
    Event,
    Finished,
    FinishReason,
    ModelChanged,
    Shared,
)


class Stream:
    """The events for one client, in order."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def put(self, event: Event) -> None:
        self._events.put(event)

    def drain(self) -> list[Event]:
        events: list[Event] = []
        with contextlib.suppress(queue.Empty):
            for _ in range(self._events.qsize()):  # and not for ever, where it is filled faster
                events.append(self._events.get_nowait())
        return events

    def wait(self, timeout: float) -> list[Event]:
        try:
            first = self._events.get(timeout=timeout)
        except queue.Empty:
            return []
        return [first, *self.drain()]


class Streams:
    """The streams of all clients. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._streams: list[Stream] = []
        self._owners: dict[int, Stream] = {}  # of the requests that have not ended
        self._state: list[Shared] = []  # what a new client has missed

    def open(self) -> Stream:
        stream = Stream()
        with self._lock:
            self._streams.append(stream)
            for event in self._state:
                stream.put(event)
        return stream

    def close(self, stream: Stream) -> list[int]:
        """Forgets a stream; returns the requests that it leaves behind."""
        with self._lock:
            if stream in self._streams:
                self._streams.remove(stream)
            left = [request for request, owner in self._owners.items() if owner is stream]
            for request in left:
                del self._owners[request]
        return left

    def new_request(self, stream: Stream) -> int:
        with self._lock:
            request = next(self._ids)
            self._owners[request] = stream
        return request

    def owns(self, stream: Stream, request: int) -> bool:
        """Whether `request` is of this client and has not ended."""
        with self._lock:
            return self._owners.get(request) is stream

    def deliver(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, Shared):
                self._remember(event)
                for stream in self._streams:
                    stream.put(event)
            elif owner := self._owners.get(event.request):
                if isinstance(event, Ending):
                    del self._owners[event.request]
                owner.put(event)

    def _remember(self, event: Shared) -> None:
        if isinstance(event, ModelChanged):
            self._state = [event] if event.model else []
        else:
            self._state.append(event)


def never_begun(request: int, command: Command) -> Ending:
    """How a command ends that was stopped while it waited."""
    if isinstance(command, Ask):
        return Finished(request, Answer.empty(FinishReason.CANCELLED))
    return Cancelled(request)
