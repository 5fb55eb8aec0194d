"""What people and programs read: results on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from typing import Final

from app.errors import OutputError

TERMINAL_SECONDS: Final = 0.05  # at least between two views of progress
LOG_SECONDS: Final = 2.0


class Console:
    """With `as_json`, stdout gets one JSON object and not a letter more."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._label = ""  # of the progress that is shown
        self._due = 0.0
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # answers hold any character
                stream.reconfigure(errors="replace")

    def stream(self, text: str) -> None:
        """A piece of an answer, as it comes."""
        if not self.as_json:
            self._end_progress()
            _print(text)

    def result(self, value: dict[str, object], text: str) -> None:
        """The end of a command: `value` as JSON, or `text`."""
        self._end_progress()
        if self.as_json:
            # ASCII, because the reader's encoding is unknown; NaN is no JSON.
            _print(f"{json.dumps(value, allow_nan=False)}\n")
        elif text:
            _print(f"{text}\n")

    def failure(self, kind: str, message: str, remedy: str) -> None:
        """What came in place of a result."""
        if self.as_json:
            error = {"kind": kind, "message": message, "remedy": remedy}
            with contextlib.suppress(OutputError):
                self.result({"error": error}, "")
                return
        self.note(f"error: {message}\n{remedy}".rstrip())

    def note(self, text: str, end: str = "\n") -> None:
        """For people only."""
        self._end_progress()
        _print_aside(f"{text}{end}")

    def aside(self, text: str) -> None:
        """A piece of what is for people only and not to be taken for the result beside it."""
        self.note(f"\033[2m{text}\033[0m" if _on_terminal() else text, end="")

    def progress(self, label: str, fraction: float) -> None:
        """A line that moves on a terminal; now and then a line in a log."""
        on_terminal = _on_terminal()
        now = time.monotonic()
        if self._label != label:
            self._end_progress()
            self._label, self._due = label, now + (0.0 if on_terminal else LOG_SECONDS)
        if now < self._due:
            return
        self._due = now + (TERMINAL_SECONDS if on_terminal else LOG_SECONDS)
        start, end = ("\r", "") if on_terminal else ("", "\n")
        _print_aside(f"{start}{label}: {fraction:4.0%}{end}")

    def close(self) -> None:
        """Give up what could not be written: the interpreter's last flush would fail by it."""
        for stream in filter(None, (sys.stdout, sys.stderr)):
            try:
                stream.flush()
            except OSError:
                with contextlib.suppress(OSError, ValueError):
                    null = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(null, stream.fileno())
                    os.close(null)

    def _end_progress(self) -> None:
        if self._label and _on_terminal():
            _print_aside("\r\033[K")  # wipe the line
        self._label = ""


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _print(text: str) -> None:
    """To stdout. Raises `OutputError` where it cannot be written, as to a disk that is full."""
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:  # its reader has had enough
        raise
    except OSError as error:
        raise OutputError(
            f"What was to be printed cannot be written: {error.strerror or error}.",
            remedy="Check where it was to go, and the free space there.",
        ) from error


def _print_aside(text: str) -> None:
    """To stderr, which may be closed, full or without a reader.

    What is for people only is worth no failure.
    """
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError):
        print(text, end="", file=sys.stderr, flush=True)
