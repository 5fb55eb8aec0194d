"""The engine: one thread that owns the loaded pair.

DESIGN. Commands go into a queue and are worked off in order by one thread, the only
one that touches the session; there is never more than one native call at a time.
Events come back through a second queue, which the owner drains whenever it likes:
the engine never waits for its reader and calls nothing of it. `Cancel` is the one
command that does not queue. It notes the request's id and, if that request is the
running one, sets the flag that the native loop reads; a request that still waits is
finished as cancelled when its turn comes. The lock guards just these two facts: which
request runs, and which are cancelled. `close` cancels what runs, tells the thread to
leave, and joins it.

The rate of plain decoding is measured after a load when nothing else waits, so that
the first answer is never held up by it.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Iterator
from typing import Final

from app.engine import devices
from app.engine.messages import (
    Ask,
    Cancel,
    Command,
    Compare,
    Compared,
    DeviceInfo,
    Event,
    Failed,
    Load,
    Loaded,
    Loading,
    PlainMeasured,
    Unload,
    Unloaded,
)
from app.engine.native import Cancelled
from app.engine.session import Session
from app.errors import EngineError, SlipstreamError

_PROGRESS_STEP: Final = 0.01  # of a load, between two events


class Engine:
    """Runs commands on a thread of its own. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._commands: queue.Queue[Command | None] = queue.Queue()
        self._events: queue.Queue[Event] = queue.Queue()
        self._lock = threading.Lock()
        self._cancelled: set[int] = set()
        self._running: int | None = None
        self._closing = False
        self._session: Session | None = None
        self._thread = threading.Thread(target=self._work, name="slipstream-engine")
        self._thread.start()

    def submit(self, command: Command) -> None:
        """Queues a command. After `close` it is ignored."""
        if isinstance(command, Cancel):
            with self._lock:
                self._cancelled.add(command.request)
                if self._running == command.request and self._session:
                    self._session.pair.cancel(True)
        elif not self._closing:
            self._commands.put(command)

    def drain(self) -> list[Event]:
        """The events since the last call, oldest first; returns at once."""
        events: list[Event] = []
        with contextlib.suppress(queue.Empty):
            while True:
                events.append(self._events.get_nowait())
        return events

    def wait(self, timeout: float) -> list[Event]:
        """Like `drain`, after waiting up to `timeout` seconds for the first event."""
        try:
            first = self._events.get(timeout=timeout)
        except queue.Empty:
            return []
        return [first, *self.drain()]

    def devices(self) -> tuple[DeviceInfo, ...]:
        """See `app.engine.devices.devices`."""
        return devices.devices()

    def close(self, timeout: float = 5.0) -> None:
        """Cancels what runs, frees the pair and joins the thread.

        Raises EngineError if the thread does not leave within `timeout` seconds.
        """
        with self._lock:
            self._closing = True
            if self._running is not None:
                self._cancelled.add(self._running)
                if self._session:
                    self._session.pair.cancel(True)
        self._commands.put(None)
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise EngineError(
                f"The engine did not stop within {timeout:g} s.", remedy="End the process."
            )

    # --- the thread ---

    def _work(self) -> None:
        probe: int | None = None  # load whose plain rate is still to be measured
        while True:
            try:
                command = self._commands.get(block=probe is None)
            except queue.Empty:
                assert probe is not None  # only then the queue is not waited for
                self._run(probe, self._measure(probe))
                probe = None
                continue
            if command is None or self._closing:
                break
            self._run(command.request, self._events_of(command))
            if isinstance(command, Load):
                probe = command.request if self._session else None
        self._unload()

    def _run(self, request: int, events: Iterator[Event]) -> None:
        """Runs one command to its end; whatever happens, the thread goes on."""
        with self._lock:
            self._running = request
            if self._session:
                self._session.pair.cancel(request in self._cancelled)
        try:
            for event in events:
                self._events.put(event)
        except SlipstreamError as error:
            self._events.put(Failed(request, error))
        except Cancelled:
            told = EngineError("Loading was cancelled.", remedy="Load a model to go on.")
            self._events.put(Failed(request, told))
        except Exception as error:
            # A fault of ours, not of the input: report it with its traceback, live on.
            logging.getLogger(__name__).exception("command %d failed", request)
            told = EngineError(
                f"{type(error).__name__}: {error}.", remedy="Report this with the log."
            )
            self._events.put(Failed(request, told))
        finally:
            with self._lock:
                self._running = None
                self._cancelled.discard(request)

    def _events_of(self, command: Command) -> Iterator[Event]:
        if isinstance(command, Load):
            return self._load(command)
        if isinstance(command, Ask):
            return self._ask(command)
        if isinstance(command, Unload):
            return self._do_unload(command)
        if isinstance(command, Compare):
            return self._compare(command)
        raise TypeError(f"not a queued command: {command!r}")

    def _load(self, command: Load) -> Iterator[Event]:
        self._unload()  # first, so that two models never need memory at once
        start = time.perf_counter()
        last = -1.0

        def progress(fraction: float) -> bool:
            nonlocal last
            if fraction - last >= _PROGRESS_STEP or fraction >= 1.0:
                last = fraction
                self._events.put(Loading(command.request, fraction))
            return command.request not in self._cancelled

        session = Session(command.params, progress)
        with self._lock:
            self._session = session
        yield Loaded(command.request, session.model, time.perf_counter() - start)

    def _ask(self, command: Ask) -> Iterator[Event]:
        if self._session is None:
            raise EngineError("No model is loaded.", remedy="Choose a model first.")
        yield from self._session.answer(command.request, command.chat, command.params)

    def _compare(self, command: Compare) -> Iterator[Event]:
        if self._session is None:
            raise EngineError("No model is loaded.", remedy="Choose a model first.")
        yield Compared(
            command.request,
            self._session.control(command.chat, command.params, command.plain, command.at),
        )

    def _measure(self, request: int) -> Iterator[Event]:
        assert self._session is not None
        with contextlib.suppress(Cancelled):
            yield PlainMeasured(request, self._session.measure_plain())
            self._session.measure_costs()

    def _do_unload(self, command: Unload) -> Iterator[Event]:
        self._unload()
        yield Unloaded(command.request)

    def _unload(self) -> None:
        with self._lock:
            session, self._session = self._session, None
        if session:
            session.close()
