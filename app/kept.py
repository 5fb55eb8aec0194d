"""What was found out about this machine or a loaded pair, kept between runs.

Files of the cache folder, a JSON table each: lost, foreign or damaged, it is found out again.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Final

from app.files import replace_text

_MOST: Final = 64  # findings of a file that are remembered


def find(path: Path, name: str) -> Any:
    """What was kept under `name`; None if nothing was."""
    return table(path).get(name)


def keep(path: Path, name: str, value: Any) -> None:
    """Adds to the file; the oldest entries go. A full disk costs only the next finding."""
    kept = table(path)
    kept.pop(name, None)
    kept[name] = value
    _write(path, kept)


def forget(path: Path, name: str) -> None:
    kept = table(path)
    if kept.pop(name, None) is not None:
        _write(path, kept)


def table(path: Path) -> dict[str, Any]:
    """All that a file holds; empty where it is lost, foreign or damaged."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}


def _write(path: Path, kept: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        replace_text(path, json.dumps(dict(list(kept.items())[-_MOST:])))
