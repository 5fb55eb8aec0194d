"""A function in a process of its own, which can be ended at any moment.

DESIGN. The client of the hub can wait in a name server, in a handshake or in a library of its
own, where no flag is read; so it has a process, and who wants it to stop ends that. What it
says comes over a pipe: any number of reports, then its result or its error. If the parent
dies, the pipe breaks and so the child goes too; nothing outlives the application.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from app.errors import DownloadError, SlipstreamError
from app.jobs import CancelToken
from app.processes import belong_to_parent

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_POLL: Final = 0.1  # seconds
_GRACE: Final = 0.5  # seconds for a child that was asked to end

_log = logging.getLogger(__name__)

Report = Callable[[object], None]


class Child:
    """`function(report, *arguments)` in a new process; a context manager that ends it."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        import multiprocessing  # here: the window opens without

        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_work, args=(there, function, arguments), name="slipstream-hub", daemon=True
        )
        self._process.start()
        there.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join(_GRACE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()
        self._here.close()

    def result(self, on_report: Report, on_wait: Callable[[], None], cancel: CancelToken) -> Any:
        """What the function returns. `on_wait` is called between reports, some times a second.

        Raises what the function raised, `JobCancelled`, or `DownloadError` if the process died.
        """
        from multiprocessing.connection import wait

        while True:
            cancel.check()
            on_wait()
            if not wait([self._here], _POLL):
                continue
            try:
                kind, value = self._here.recv()
            except (EOFError, OSError):
                self._process.join(_GRACE)
                raise DownloadError(
                    f"The download ended unexpectedly (status {self._process.exitcode}).",
                    remedy="Try again; what has come is kept.",
                ) from None
            if kind == "result":
                return value
            if kind == "error":
                raise value
            on_report(value)


def _work(pipe: Connection, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    belong_to_parent()

    def report(value: object) -> None:
        pipe.send(("report", value))

    try:
        message = ("result", function(report, *arguments))
    except SlipstreamError as error:
        message = ("error", error)
    except BrokenPipeError:
        return
    except Exception as error:
        # Its text may hold an address with a key in it, so the kind alone is told.
        message = (
            "error",
            DownloadError(
                f"The hub's client failed unexpectedly ({type(error).__name__}).",
                remedy="Try again; what has come is kept.",
            ),
        )
    with contextlib.suppress(BrokenPipeError):
        pipe.send(message)
