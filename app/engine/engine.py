"""The engine as its clients see it: streams in front, the worker behind."""

from __future__ import annotations

from app.engine.door import Client
from app.engine.messages import Command, Event
from app.engine.streams import Streams
from app.engine.worker import Worker


class Engine:
    """Runs one loaded pair beside the caller. See `app.engine.door`."""

    def __init__(self) -> None:
        self._streams = Streams()
        self._worker = Worker(self._streams.deliver)

    def client(self) -> Client:
        return _Client(self._streams, self._worker)

    def close(self, timeout: float = 5.0) -> None:
        self._worker.close(timeout)


class _Client:
    def __init__(self, streams: Streams, worker: Worker) -> None:
        self._streams, self._worker = streams, worker
        self._stream = streams.open()

    def submit(self, command: Command) -> int:
        request = self._streams.new_request(self._stream)
        self._worker.submit(request, command)
        return request

    def cancel(self, request: int) -> None:
        if self._streams.owns(self._stream, request):
            self._worker.cancel(request)

    def answer_now(self, request: int) -> None:
        if self._streams.owns(self._stream, request):
            self._worker.answer_now(request)

    def drain(self) -> list[Event]:
        return self._stream.drain()

    def wait(self, timeout: float) -> list[Event]:
        return self._stream.wait(timeout)

    def close(self) -> None:
        for request in self._streams.close(self._stream):
            self._worker.cancel(request)
