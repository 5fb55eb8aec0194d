"""Work in a process of its own, whose end by a fault of native code is an error here.

DESIGN: the child is started anew (not forked: the parent has threads and perhaps Qt) and sends
over one pipe how far it is, what it logs, and at last its result or its error. The parent asks
for cancellation over the same pipe; a child that does not stop in time is killed, and what it
had begun to write is removed. When the parent dies, the pipe closes, and the child stops too.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, TypeVar

from app.convert.watch import OnBytes
from app.errors import OutputError
from app.jobs import CancelToken, JobCancelled

_log = logging.getLogger(__name__)

_POLL: Final = 0.05  # seconds between two looks at whether to cancel
_GRACE: Final = 1.5  # seconds that a child has to stop by itself

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Work = Callable[[_Item, OnBytes | None, CancelToken | None], _Result]


def run_apart(
    work: _Work[_Item, _Result],
    item: _Item,
    progress: OnBytes | None,
    cancelled: CancelToken | None,
    leftovers: Sequence[Path],
) -> _Result:
    """What ``work(item, progress, cancelled)`` gives or raises in a child process.

    `work` is a function of a module. `leftovers` are files to remove if the child is ended
    before it can do that. Raises `OutputError` where the child ended without a word.
    """
    if cancelled:
        cancelled.check()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_child, args=(theirs, work, item), name="convert", daemon=True)
    child.start()
    theirs.close()
    try:
        result: _Result = _follow(child, ours, progress, cancelled)
        return result
    finally:
        ours.close()  # the child takes that for a wish to stop
        child.join(_GRACE)
        if child.exitcode is None:
            child.kill()
            child.join()
        if child.exitcode:
            for file in leftovers:
                with contextlib.suppress(OSError):
                    file.unlink(missing_ok=True)
        child.close()


def _follow(
    child: Any, pipe: Connection, progress: OnBytes | None, cancelled: CancelToken | None
) -> Any:
    deadline = None
    while True:
        if cancelled and cancelled.cancelled and deadline is None:
            deadline = time.monotonic() + _GRACE
            with contextlib.suppress(OSError):  # it has ended: what it came to is read below
                pipe.send("cancel")
        if deadline is not None and time.monotonic() > deadline:
            raise JobCancelled
        if not pipe.poll(_POLL):
            continue
        try:
            kind, value = pipe.recv()
        except (EOFError, OSError) as error:
            child.join()
            raise OutputError(
                f"The process that converts ended without a word (exit status {child.exitcode}).",
                remedy="Memory may have been short: close other programs, then convert again.",
            ) from error
        if kind == "progress" and progress:
            progress(*value)
        elif kind == "log":
            logging.getLogger(value[0]).log(value[1], "%s", value[2])
        elif kind == "result":
            return value
        elif kind == "error":
            raise value


def _child(pipe: Connection, work: _Work[_Item, _Result], item: _Item) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    token = CancelToken()
    threading.Thread(target=_listen, args=(pipe, token), daemon=True).start()
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(_Sender(pipe))
    if hasattr(os, "nice"):
        os.nice(5)  # a window and a chat go before
    try:
        answer: tuple[str, object] = ("result", work(item, _Throttled(pipe), token))
    except BaseException as error:
        answer = ("error", _portable(error))
    with contextlib.suppress(OSError):  # the parent went away
        pipe.send(answer)


def _listen(pipe: Connection, token: CancelToken) -> None:
    with contextlib.suppress(EOFError, OSError):
        pipe.recv()
    token.cancel()


class _Throttled:
    """Progress as the eye wants it, not after each of thousands of pieces."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._next = 0.0

    def __call__(self, done: int, total: int, name: str) -> None:
        now = time.monotonic()
        if now >= self._next or done == total:
            self._next = now + _POLL
            with contextlib.suppress(OSError):  # `_listen` notices, and cancels
                self._pipe.send(("progress", (done, total, name)))


class _Sender(logging.Handler):
    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self._pipe = pipe

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send(("log", (record.name, record.levelno, record.getMessage())))


def _portable(error: BaseException) -> BaseException:
    """`error` if it can travel, else its text."""
    from app.errors import SlipstreamError

    if isinstance(error, SlipstreamError | JobCancelled):
        return error
    return RuntimeError("".join(traceback.format_exception(error)))
