"""The user cache: where it is, and a lock so that two builds do not write into one tree.

Standard library only, no import of the rest: `dev.py` uses this module as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """`SLIPSTREAM_CACHE`, or this platform's cache folder + `slipstream`."""
    if named := os.environ.get("SLIPSTREAM_CACHE"):
        return Path(named).expanduser().resolve()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
        return Path(local) / "slipstream" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "slipstream"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipstream"


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path` across processes; waits, and says so once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as handle:
        if not _try_lock(handle.fileno()):
            print(f"waiting for another build ({path})", file=sys.stderr, flush=True)
            _wait_lock(handle.fileno())
        yield  # closing the handle gives the lock back, also when the process dies


if sys.platform == "win32":
    import msvcrt
    import time

    def _try_lock(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _wait_lock(fd: int) -> None:
        while not _try_lock(fd):
            time.sleep(0.5)

else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _wait_lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)
