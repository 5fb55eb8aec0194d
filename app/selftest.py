"""Trying out a pair in a process of its own: `slipstream selftest`, as anybody could call it.

A file that makes the native library abort ends that process and no more, and a model that
is in use stays loaded. Window and command line pass `try_pair` into the job.
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Final

from app import frozen
from app.errors import EngineError, ModelFileError
from app.jobs import CancelToken
from app.passport import Check

_POLL: Final = 0.1  # seconds
_PROGRESS: Final = re.compile(r"(\w[\w ]*): +(\d+)%")

# Its questions are short, and whatever is in use keeps its memory.
_SELFTEST: Final = ("selftest", "--quick", "--json", "--ctx", "4096", "--model")

OnProgress = Callable[[float, str], None]
"""Called with the share of the work that is done, and what is being done."""

_PARTS: Final = {"Loading": (0.0, 0.3), "Answering": (0.3, 0.7)}


def try_pair(
    folder: Path, progress: OnProgress, cancel: CancelToken, command: Sequence[str] = ()
) -> tuple[Check, ...]:
    """What the self-test says of the pair in `folder`.

    Raises `ModelFileError` if the process died of it, `EngineError` if it could not run, and
    `JobCancelled`.
    """
    argv = command or (*frozen.command_line(), *_SELFTEST)
    process = subprocess.Popen(
        [*argv, str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    assert process.stdout is not None
    assert process.stderr is not None
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    out: list[str] = []
    readers = [
        threading.Thread(target=_read, args=(process.stderr, lines.put), daemon=True),
        threading.Thread(target=_read, args=(process.stdout, out.append), daemon=True),
    ]
    for reader in readers:
        reader.start()
    last = ""
    try:
        while process.poll() is None or any(reader.is_alive() for reader in readers):
            cancel.check()
            with contextlib.suppress(queue.Empty):
                line = lines.get(timeout=_POLL)
                last = line.strip() or last
                if (found := _PROGRESS.search(line)) and found[1] in _PARTS:
                    start, share = _PARTS[found[1]]
                    progress(start + share * int(found[2]) / 100, found[1].lower())
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for reader in readers:
            reader.join()
        process.stdout.close()
        process.stderr.close()
    return _checks("".join(out), process.returncode, last, folder)


def _read(stream: IO[str], take: Callable[[str], None]) -> None:
    with contextlib.suppress(ValueError):  # it was closed
        for line in stream:
            take(line)


def _checks(out: str, status: int, last: str, folder: Path) -> tuple[Check, ...]:
    try:
        value = json.loads(out)
        if "error" in value:
            error = value["error"]
            raise EngineError(error["message"], remedy=error["remedy"])
        return tuple(Check(**check) for check in value["checks"])
    except (ValueError, LookupError, TypeError):
        if status < 0:
            raise ModelFileError(
                f"Loading `{folder}` ended its process (signal {-status}).",
                remedy="Convert the model again; if it happens once more, choose another type.",
            ) from None
        raise EngineError(
            f"The self-test could not run (status {status}): {last}",
            remedy="Try again; `slipstream selftest` tells more.",
        ) from None
