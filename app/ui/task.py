"""A service's operation off the main thread.

`run(parent, operation, success, failure)` starts a thread for it and calls back on the
main thread, unless `parent` is gone by then. The thread is a daemon: an operation that
does not read its cancel token cannot keep the process alive.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, TypeVar

from PySide6.QtCore import QObject, Signal

from app.errors import EngineError, SlipstreamError
from app.jobs import CancelToken, JobCancelled

T = TypeVar("T")

_log = logging.getLogger(__name__)

_running: Final[set[Task[Any]]] = set()
"""No task goes before its end has come to the main thread, even where its parent has gone:
its thread may be speaking through it at that very moment. It is not its parent's child."""


class Task(QObject, Generic[T]):
    _progressed = Signal(float)
    _ended = Signal(object)  # what is to be called on the main thread, or None

    def __init__(
        self,
        parent: QObject,
        operation: Callable[[Callable[[float], None], CancelToken], T],
        success: Callable[[T], None],
        failure: Callable[[SlipstreamError], None],
        progress: Callable[[float], None] | None = None,
    ) -> None:
        super().__init__()
        self._operation = operation
        self._token = CancelToken()
        self._success, self._failure, self._progress = success, failure, progress
        self._progressed.connect(self._go_on)
        self._ended.connect(self._end)
        parent.destroyed.connect(self.cancel)
        _running.add(self)
        self.destroyed.connect(lambda: _running.discard(self))
        self._thread = threading.Thread(target=self._work, name="task", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Nothing is called any more, whatever has been sent already."""
        self._token.cancel()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _work(self) -> None:
        callback: Callable[[], None] | None = None
        try:
            result = self._operation(self._tell, self._token)
            callback = partial(self._success, result)
        except JobCancelled:
            pass
        except SlipstreamError as error:
            callback = partial(self._failure, error)
        except Exception as error:
            # A fault of ours, not of the input.
            _log.exception("A task in the background failed.")
            failure = EngineError(
                f"Something went wrong: {error}", remedy="The log has the details; try again."
            )
            failure.__cause__ = error
            callback = partial(self._failure, failure)
        with contextlib.suppress(RuntimeError):  # as in `_tell`
            self._ended.emit(callback)

    def _tell(self, fraction: float) -> None:
        """On the thread of the work, which may outlive the application: Qt is gone then."""
        with contextlib.suppress(RuntimeError):
            self._progressed.emit(fraction)

    def _go_on(self, fraction: float) -> None:
        if self._progress is not None and not self._token.cancelled:
            self._progress(fraction)

    def _end(self, callback: Callable[[], None] | None) -> None:
        self.deleteLater()  # not before Qt has left it
        if callback is not None and not self._token.cancelled:
            callback()


run = Task
