"""One thread that owns the loaded pair.

DESIGN. Commands wait in a queue and are worked off in order by one thread, the only one
that calls into the pair; there is never more than one native call at a time. Events leave
through `deliver`, which is called on this thread (for commands that never began, on the
caller's) and must not wait. The lock guards what other threads look at: the queue, which
request runs, whether it is to stop or to think no more, and the pair's flag that the native
loop reads.

`cancel` sets that flag where the request runs; where it still waits, it is taken out of
the queue and ends at once. `close` does both with everything and joins the thread.

`Count` is a question that takes no time to speak of, and waits for no answer's end: it is
worked off between two events of whatever runs.

What is measured of a pair is an errand: it runs when nothing waits, and stops when
something comes, so that a question always goes first. It is done anew when nothing waits
again. `Measure` runs the errands as a command, for who wants to wait for them.

Nothing but `submit`, `cancel`, `answer_now`, `close` and `deliver` is known outside, and all
they carry can be pickled: a process of its own takes the thread's place by replacing this file.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from app.binding import devices
from app.engine.messages import (
    Ask,
    Command,
    Compare,
    Compared,
    Count,
    Counted,
    Devices,
    Event,
    ExactnessProbed,
    Failed,
    ListDevices,
    Load,
    Loaded,
    Loading,
    Measure,
    Measured,
    ModelChanged,
    PlainMeasured,
    Unload,
    Unloaded,
)
from app.engine.plain import Plain
from app.engine.streams import never_begun
from app.errors import DeviceError, EngineError, SlipstreamError
from app.jobs import JobCancelled

if TYPE_CHECKING:
    from app.engine.pair import LoadedPair

_PROGRESS_STEP: Final = 0.01  # of a load, between two events
_CALM_S: Final = 2.0  # without a count, after one that the probe had to make way for

_log = logging.getLogger(__name__)


class Worker:
    """Runs commands on a thread of its own. All methods may be called from any thread."""

    def __init__(self, deliver: Callable[[Event], None]) -> None:
        self._deliver = deliver
        self._changed = threading.Condition()
        self._waiting: deque[tuple[int, Command]] = deque()
        self._running: int | None = None
        self._stop = False  # what runs
        self._answer_now = False  # the same: it is to think no more
        self._errand: Callable[[], None] | None = None  # that runs
        self._probe_at = 0.0  # not before, on the clock of `time.monotonic`
        self._closing = False
        self._pair: LoadedPair | None = None
        self._errands: deque[Callable[[], None]] = deque()
        self._thread = threading.Thread(target=self._work, name="slipstream-engine")
        self._thread.start()

    def submit(self, request: int, command: Command) -> None:
        """Queues a command. After `close` it ends at once."""
        with self._changed:
            if not self._closing:
                self._waiting.append((request, command))
                if isinstance(command, Count) and self._errand == self._probe_exact:
                    self._probe_at = time.monotonic() + _CALM_S
                    self._interrupt()
                elif self._errand and not isinstance(command, Count):
                    self._interrupt()
                self._changed.notify()
                return
        self._deliver(never_begun(request, command))

    def cancel(self, request: int) -> None:
        """Stops a request, whether it runs or waits; any other one is left alone."""
        with self._changed:
            if request == self._running:
                self._stop = True
                self._interrupt()
            dropped = [waiting for waiting in self._waiting if waiting[0] == request]
            for waiting in dropped:
                self._waiting.remove(waiting)
        for waiting in dropped:
            self._deliver(never_begun(*waiting))

    def answer_now(self, request: int) -> None:
        """Ends the thinking of a request that runs."""
        with self._changed:
            self._answer_now |= request == self._running

    def close(self, timeout: float) -> None:
        """Cancels everything, frees the pair and joins the thread.

        Raises EngineError if the thread does not leave within `timeout` seconds.
        """
        with self._changed:
            self._closing = self._stop = True
            self._interrupt()
            dropped = list(self._waiting)
            self._waiting.clear()
            self._changed.notify()
        for waiting in dropped:
            self._deliver(never_begun(*waiting))
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise EngineError(
                f"The engine did not stop within {timeout:g} s.", remedy="End the process."
            )

    def _interrupt(self) -> None:
        """Under the lock: what the pair computes stops as soon as it can."""
        if self._pair:
            self._pair.cancel(True)

    # --- the thread ---

    def _work(self) -> None:
        while (job := self._next()) is not None:
            self._run(*job)
        self._free()

    def _next(self) -> tuple[int, Command] | None:
        """The next command, None to leave; runs errands until there is one."""
        while True:
            with self._changed:
                while (pause := self._pause()) != 0:
                    self._changed.wait(pause)
                if self._closing:
                    return None
                if self._pair:
                    self._pair.cancel(False)
                if self._waiting:
                    self._running, command = self._waiting.popleft()
                    self._stop = self._answer_now = False
                    return self._running, command
                self._errand = self._errands[0]
            self._run_errand(self._errand)

    def _pause(self) -> float | None:
        """Under the lock: for how long there is nothing to do; None: until a command comes."""
        if self._waiting or self._closing:
            return 0
        if not self._errands:
            return None
        return max(0, self._probe_at - time.monotonic()) if self._probes_next() else 0

    def _probes_next(self) -> bool:
        return self._errands[0] == self._probe_exact

    def _run_errand(self, errand: Callable[[], None]) -> None:
        try:
            errand()
            self._errands.popleft()
        except JobCancelled:
            pass  # something came; this is done anew when nothing waits
        except Exception as error:
            self._errands.clear()
            self._deliver(PlainMeasured(Plain(), _reported(error, "measuring")))
        finally:
            with self._changed:
                self._errand = None

    def _run(self, request: int, command: Command) -> None:
        """Runs one command to its end; whatever happens, the thread goes on."""
        try:
            for event in self._events_of(request, command):
                self._deliver(event)
                self._count_between()
        except JobCancelled:
            self._deliver(never_begun(request, command))
        except Exception as error:
            failure = _reported(error, f"command {request}")
            if isinstance(failure, DeviceError):
                self._free_if_lost(failure)  # before anybody asks on
            self._deliver(Failed(request, failure))
        finally:
            with self._changed:
                self._running = None

    def _count_between(self) -> None:
        """What wants nothing but a count need not wait until the answer ends."""
        with self._changed:
            counts = [waiting for waiting in self._waiting if isinstance(waiting[1], Count)]
            for waiting in counts:
                self._waiting.remove(waiting)
        for request, command in counts:
            try:
                assert isinstance(command, Count)
                self._deliver(self._count(request, command))
            except JobCancelled:  # the answer's stop is also this one's
                self._deliver(never_begun(request, command))
            except Exception as error:
                self._deliver(Failed(request, _reported(error, f"command {request}")))

    def _events_of(self, request: int, command: Command) -> Iterator[Event]:
        match command:
            case Load():
                return self._load(request, command)
            case Ask():
                return self._loaded().answer(
                    request, command.chat, command.params, lambda: self._answer_now
                )
            case Unload():
                return self._unload(request)
            case ListDevices():
                return iter((Devices(request, devices()),))
            case Measure():
                return self._measure(request, command)
            case Compare():
                return self._compare(request, command)
            case Count():
                return iter((self._count(request, command),))

    def _load(self, request: int, command: Load) -> Iterator[Event]:
        from app.engine.pair import LoadedPair  # in this thread: the window is open earlier

        self._free()  # first, so that two models never need memory at once
        start = time.perf_counter()
        last = -1.0

        def progress(fraction: float) -> bool:
            nonlocal last
            if not self._stop and (fraction - last >= _PROGRESS_STEP or fraction >= 1.0):
                last = fraction
                self._deliver(Loading(request, fraction))
            return not self._stop

        try:
            pair = LoadedPair(command.params, progress)
        except SlipstreamError as error:
            self._deliver(ModelChanged(None, error))
            raise
        with self._changed:
            self._pair = pair
        self._errands.extend((pair.get_ready, self._measure_plain, self._probe_exact))
        yield ModelChanged(pair.model)
        yield Loaded(request, pair.model, time.perf_counter() - start)

    def _unload(self, request: int) -> Iterator[Event]:
        self._free()
        yield Unloaded(request)

    def _measure(self, request: int, command: Measure) -> Iterator[Event]:
        pair = self._loaded()
        while self._errands and (command.exact or not self._probes_next()):
            self._errands[0]()
            self._errands.popleft()
        yield Measured(request, pair.model.exact)

    def _measure_plain(self) -> None:
        self._deliver(PlainMeasured(self._loaded().measure_plain()))

    def _count(self, request: int, command: Count) -> Counted:
        return Counted(request, self._loaded().count(command.chat, think=command.think))

    def _probe_exact(self) -> None:
        found = self._loaded().probe_exact()
        if found is not None:
            self._deliver(ExactnessProbed(found))

    def _compare(self, request: int, command: Compare) -> Iterator[Event]:
        pair = self._loaded()
        yield Compared(
            request, pair.control(command.chat, command.params, command.plain, command.at)
        )

    def _loaded(self) -> LoadedPair:
        if self._pair is None:
            raise EngineError("No model is loaded.", remedy="Choose a model first.")
        return self._pair

    def _free_if_lost(self, error: DeviceError) -> None:
        """A device that failed once may work on; one that is lost takes the pair along."""
        try:
            if self._pair:
                self._pair.try_out()
        except JobCancelled:
            pass
        except Exception:  # whatever it is, the pair is of no use
            self._free(error)

    def _free(self, error: SlipstreamError | None = None) -> None:
        with self._changed:
            pair, self._pair = self._pair, None
        self._errands.clear()
        if pair:
            pair.close()
            self._deliver(ModelChanged(None, error))


def _reported(error: Exception, what: str) -> SlipstreamError:
    """The error as it is told. One that is ours leaves its traceback in the log."""
    if isinstance(error, SlipstreamError):
        return error
    _log.error("%s failed", what, exc_info=error)
    return EngineError(f"{type(error).__name__}: {error}.", remedy="Report this with the log.")
