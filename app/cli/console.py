"""What people and programs read: results on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from typing import Final

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
            print(text, end="", flush=True)

    def result(self, value: dict[str, object], text: str) -> None:
        """The end of a command: `value` as JSON, or `text`."""
        self._end_progress()
        if self.as_json:
            # ASCII, because the reader's encoding is unknown; NaN is no JSON.
            print(json.dumps(value, allow_nan=False), flush=True)
        elif text:
            print(text, flush=True)

    def failure(self, kind: str, message: str, remedy: str) -> None:
        """What came in place of a result."""
        if self.as_json:
            error = {"kind": kind, "message": message, "remedy": remedy}
            self.result({"error": error}, "")
        else:
            self.note(f"error: {message}\n{remedy}".rstrip())

    def note(self, text: str, end: str = "\n") -> None:
        """For people only."""
        self._end_progress()
        print(text, end=end, file=sys.stderr, flush=True)

    def aside(self, text: str) -> None:
        """A piece of what is for people only and not to be taken for the result beside it."""
        self.note(f"\033[2m{text}\033[0m" if sys.stderr.isatty() else text, end="")

    def progress(self, label: str, fraction: float) -> None:
        """A line that moves on a terminal; now and then a line in a log."""
        on_terminal = sys.stderr.isatty()
        now = time.monotonic()
        if self._label != label:
            self._end_progress()
            self._label, self._due = label, now + (0.0 if on_terminal else LOG_SECONDS)
        if now < self._due:
            return
        self._due = now + (TERMINAL_SECONDS if on_terminal else LOG_SECONDS)
        start, end = ("\r", "") if on_terminal else ("", "\n")
        print(f"{start}{label}: {fraction:4.0%}", end=end, file=sys.stderr, flush=True)

    def hang_up(self) -> None:
        """The reader of stdout is gone: let the interpreter's last flush succeed."""
        with contextlib.suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sys.stdout.fileno())
            os.close(null)

    def _end_progress(self) -> None:
        if self._label and sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)  # wipe the line
        self._label = ""
