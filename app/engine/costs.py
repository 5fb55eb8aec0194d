"""What rounds cost on this device with this pair, measured once and kept.

A file of the cache folder: lost, foreign or damaged, it is measured again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

from app.binding import ABI, Costs, library_path
from app.engine.params import LoadParams
from app.files import replace_text

_MOST: Final = 64  # pairs that are remembered


def key(params: LoadParams, device: str) -> str:
    """Changes with all that the costs depend on: device, files, threads, library."""
    files = [file for file in (params.target, params.draft, library_path()) if file]
    seen = [(str(f), (stat := f.stat()).st_size, stat.st_mtime_ns) for f in files]
    parts = json.dumps(
        [ABI, device, params.draft_backend, params.threads, os.cpu_count(), params.n_ubatch, seen]
    )
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def load(path: Path, name: str) -> Costs | None:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        found = _read(path)[name]
        costs = Costs(
            float(found["plain"]),
            float(found["draft"]),
            float(found["draft_one"]),
            tuple(map(float, found["verify"])),
        )
        if min(costs.plain, costs.draft, costs.draft_one) > 0 and min(costs.verify) >= 0:
            return costs
    return None


def save(path: Path, name: str, costs: Costs) -> None:
    """Adds to the file; the oldest entries go. A full disk costs only the next measurement."""
    with contextlib.suppress(OSError):
        kept: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError, TypeError):
            kept = _read(path)
        kept.pop(name, None)
        kept[name] = dataclasses.asdict(costs)
        replace_text(path, json.dumps(dict(list(kept.items())[-_MOST:])))


def _read(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise TypeError("not a table")
    return found
