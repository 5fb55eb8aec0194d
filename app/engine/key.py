"""Under which name it is kept what was found out about a pair."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os

from app.binding import ABI, library_path
from app.engine.params import LoadParams


def key_of(params: LoadParams, device: str) -> str:
    """Changes with all that a finding depends on: device, files, library, and how it is loaded."""
    files = [file for file in (params.target, params.draft, library_path()) if file]
    seen = [(str(f), (stat := f.stat()).st_size, stat.st_mtime_ns) for f in files]
    chosen = (params.draft_backend, params.threads, params.n_ubatch, params.kv_type)
    parts = json.dumps([ABI, device, *chosen, _cores(), seen])
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def _cores() -> int | None:
    """Processors that the affinity mask leaves: as many threads are made of them by default."""
    with contextlib.suppress(AttributeError):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count()
