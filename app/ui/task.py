"""A service's operation off the main thread.

`run(parent, operation, success, failure)` starts a thread for it and calls back on the
main thread, unless `parent` is gone by then. The thread is a daemon: an operation that
does not read its cancel token cannot keep the process alive.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, Signal

from app.errors import EngineError, SlipstreamError
from app.jobs import CancelToken, JobCancelled

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Task(QObject, Generic[T]):
    _progressed = Signal(float)
    _done = Signal(object)
    _failed = Signal(object)

    def __init__(
        self,
        parent: QObject,
        operation: Callable[[Callable[[float], None], CancelToken], T],
        success: Callable[[T], None],
        failure: Callable[[SlipstreamError], None],
        progress: Callable[[float], None] | None = None,
    ) -> None:
        super().__init__(parent)
        self._operation = operation
        self._token = CancelToken()
        self._success, self._failure = success, failure
        self._done.connect(self._succeed)
        self._failed.connect(self._fail)
        if progress is not None:
            self._progressed.connect(progress)
        self._thread = threading.Thread(target=self._work, name="task", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        self._token.cancel()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _work(self) -> None:
        try:
            result = self._operation(self._report, self._token)
        except JobCancelled:
            return
        except SlipstreamError as error:
            self._tell(self._failed, error)
        except Exception as error:
            _log.exception("A task failed.")
            told = EngineError(
                f"Something went wrong: {error}", remedy="The log has the details; try again."
            )
            told.__cause__ = error
            self._tell(self._failed, told)
        else:
            self._tell(self._done, result)

    def _report(self, fraction: float) -> None:
        self._tell(self._progressed, fraction)

    def _tell(self, signal: object, value: object) -> None:
        if self._token.cancelled:
            return
        try:
            signal.emit(value)  # type: ignore[attr-defined]
        except RuntimeError:
            return  # the parent is gone, and this with it

    def _succeed(self, result: T) -> None:
        self.deleteLater()
        if not self._token.cancelled:  # it may have been, since the result was sent
            self._success(result)

    def _fail(self, error: SlipstreamError) -> None:
        self.deleteLater()
        if not self._token.cancelled:
            self._failure(error)


run = Task
