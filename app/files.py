"""What several services ask of files and disks; small files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Make `path` hold `text`, in UTF-8; its folder too. It stays as it was on `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def is_full(error: OSError) -> bool:
    """Whether it says that a disk, or the user's share of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def existing(folder: Path) -> Path:
    """`folder`, or the nearest of those it will lie in that is there: whose disk it will use."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return place
