"""Under which name it is kept what was found out about a pair."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from app.binding import ABI, backend_libraries, default_threads, library_path
from app.engine.params import LoadParams


def key_of(params: LoadParams, device: str) -> str:
    """Changes with all that a finding depends on: device, files, libraries and which variant of the
    CPU's they were told to take, how it is loaded, and the processors that affinity and a
    container's quota leave."""
    chosen = (params.draft_backend, params.threads, params.n_ubatch, params.kv_type)
    files = _seen(params.target, params.draft, library_path(), *backend_libraries())
    variant = os.environ.get("SLIPSTREAM_CPU")
    return _hashed([ABI, device, variant, *chosen, default_threads(), files])


def models_key_of(params: LoadParams) -> str:
    """The same for what depends on the models alone, wherever they run."""
    return _hashed(_seen(params.target, params.draft))


def _seen(*files: Path | None) -> list[object]:
    return [(str(f), (stat := f.stat()).st_size, stat.st_mtime_ns) for f in files if f]


def _hashed(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
