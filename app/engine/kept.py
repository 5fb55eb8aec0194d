"""What was found out about a loaded pair, kept between runs.

Files of the cache folder, a JSON table each: lost, foreign or damaged, it is found out again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

from app.binding import ABI, library_path
from app.engine.params import LoadParams
from app.files import replace_text

_MOST: Final = 64  # pairs that are remembered


def key(params: LoadParams, device: str) -> str:
    """Changes with all that a finding depends on: device, files, threads, library."""
    files = [file for file in (params.target, params.draft, library_path()) if file]
    seen = [(str(f), (stat := f.stat()).st_size, stat.st_mtime_ns) for f in files]
    parts = json.dumps(
        [ABI, device, params.draft_backend, params.threads, _cores(), params.n_ubatch, seen]
    )
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def _cores() -> int | None:
    """Processors that the affinity mask leaves: as many threads are made of them by default."""
    with contextlib.suppress(AttributeError):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def find(path: Path, name: str) -> Any:
    """What was kept under `name`; None if nothing was."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        return _read(path)[name]
    return None


def keep(path: Path, name: str, value: Any) -> None:
    """Adds to the file; the oldest entries go. A full disk costs only the next finding."""
    with contextlib.suppress(OSError):
        kept: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError, TypeError):
            kept = _read(path)
        kept.pop(name, None)
        kept[name] = value
        replace_text(path, json.dumps(dict(list(kept.items())[-_MOST:])))


def _read(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise TypeError("not a table")
    return found
