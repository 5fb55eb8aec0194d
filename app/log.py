"""Diagnostics: a rotating file, and stderr for what a user should see.

Never stdout, which belongs to answers and to JSON. Modules log through
``logging.getLogger(__name__)``; only a composition root calls `start`. From then on
exceptions that nobody caught are logged too, whichever thread or slot they end.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Final

LEVEL_VARIABLE: Final = "SLIPSTREAM_LOG"  # debug, info, warning or error, for stderr

_ROOT: Final = logging.getLogger("app")
_FILE_BYTES: Final = 1_000_000
_FILES_KEPT: Final = 3
_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)  # by verbosity
_handlers: Final[list[logging.Handler]] = []
_undo: Final[list[Callable[[], None]]] = []  # what gives the interpreter its hooks back


def start(file: Path, verbosity: int = 0) -> None:
    """Log to `file` and to stderr; a second call replaces what the first set up.

    `verbosity` counts the ``-v`` of the command line; ``SLIPSTREAM_LOG`` wins over it.
    A log that cannot be written is no reason not to start.
    """
    stop()
    _catch_uncaught()
    _hear_others()
    level = _stderr_level(verbosity)
    _ROOT.setLevel(logging.DEBUG)
    if sys.stderr is not None:  # a windowed build has none
        _add(logging.StreamHandler(sys.stderr), level, "%(levelname)s: %(message)s")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        to_file = _ToFile(
            file,
            maxBytes=_FILE_BYTES,
            backupCount=_FILES_KEPT,
            encoding="utf-8",
            errors="backslashreplace",  # a path may hold what UTF-8 cannot
        )
    except OSError as error:
        _ROOT.warning("There is no log file: %s", error)
        return
    fields = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
    _add(to_file, min(logging.INFO, level), fields)


def stop() -> None:
    """Undo `start`."""
    while _undo:
        _undo.pop()()
    while _handlers:
        handler = _handlers.pop()
        _ROOT.removeHandler(handler)
        with contextlib.suppress(OSError):  # what could not be written before cannot be now
            handler.close()
    _ROOT.setLevel(logging.NOTSET)


class _ToFile(RotatingFileHandler):
    """One whose disk is full is told of once."""

    _told = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        error = sys.exception()
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._told:
            self._told = True
            _ROOT.warning("The log cannot be written any more: %s", error)


def _add(handler: logging.Handler, level: int, fields: str) -> None:
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter(fields))
    _ROOT.addHandler(handler)
    _handlers.append(handler)


def _hear_others() -> None:
    """Warnings of other packages, on stderr as without us.

    The first that speaks through the root logger by `logging.debug` would else have a handler
    made there by `logging.basicConfig`, and that one would print all of ours, whatever its level.
    """
    if sys.stderr is None:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.addFilter(lambda record: record.name.partition(".")[0] != _ROOT.name)
    root = logging.getLogger()
    root.addHandler(handler)
    _undo.append(lambda: root.removeHandler(handler))


def _catch_uncaught() -> None:
    """Log what would otherwise end on stderr alone, which a windowed build does not have."""

    def uncaught(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):  # asked for, and no fault
            sys.__excepthook__(kind, error, trace)
        else:
            _ROOT.critical("Not caught: %r", error, exc_info=(kind, error, trace))

    def uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
        if not issubclass(args.exc_type, SystemExit):
            name = args.thread.name if args.thread else "a thread that is gone"
            error = args.exc_value or args.exc_type()
            _ROOT.critical(
                "Not caught in `%s`: %r",
                name,
                error,
                exc_info=(args.exc_type, error, args.exc_traceback),
            )

    def unraisable(args: sys.UnraisableHookArgs) -> None:
        error = args.exc_value or args.exc_type()
        _ROOT.error(
            "%s %r: %r",
            args.err_msg or "Ignored in",
            args.object,
            error,
            exc_info=(args.exc_type, error, args.exc_traceback),
        )

    before = sys.excepthook, threading.excepthook, sys.unraisablehook
    sys.excepthook, threading.excepthook, sys.unraisablehook = (
        uncaught,
        uncaught_in_thread,
        unraisable,
    )

    def undo() -> None:
        sys.excepthook, threading.excepthook, sys.unraisablehook = before

    _undo.append(undo)


def _stderr_level(verbosity: int) -> int:
    named = logging.getLevelNamesMapping().get(os.environ.get(LEVEL_VARIABLE, "").upper())
    return named or _LEVELS[min(verbosity, len(_LEVELS) - 1)]
