"""Under which name it is kept what was found out about a pair."""

from __future__ import annotations

import hashlib
import json

from app.binding import ABI, default_threads, library_path
from app.engine.params import LoadParams


def key_of(params: LoadParams, device: str) -> str:
    """Changes with all that a finding depends on: device, files, library, how it is loaded, and
    the processors that affinity and a container's quota leave."""
    files = [file for file in (params.target, params.draft, library_path()) if file]
    seen = [(str(f), (stat := f.stat()).st_size, stat.st_mtime_ns) for f in files]
    chosen = (params.draft_backend, params.threads, params.n_ubatch, params.kv_type)
    parts = json.dumps([ABI, device, *chosen, default_threads(), seen])
    return hashlib.sha256(parts.encode()).hexdigest()[:32]
