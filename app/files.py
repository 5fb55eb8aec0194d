"""What several services ask of files and disks; small files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from app.errors import OutputError, valid_text


def replace_text(path: Path, text: str) -> None:
    """Make `path` hold `text`, in UTF-8: see `replace_bytes`."""
    replace_bytes(path, text.encode())


def replace_bytes(path: Path, content: bytes) -> None:
    """Make `path` hold `content`; its folder too. It stays as it was on `OSError`.

    Where it is a link, as to a file that is kept with others, what it leads to is replaced.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def set_aside(path: Path) -> Path:
    """Give what cannot be read a name of its own beside it, `NAME.broken`, and return that.

    An earlier one keeps its name. Raises `OSError`.
    """
    broken, number = path.with_name(f"{path.name}.broken"), 1
    while os.path.lexists(broken):
        number += 1
        broken = path.with_name(f"{path.name}.broken-{number}")
    path.replace(broken)
    return broken


def is_full(error: OSError) -> bool:
    """Whether it says that a disk, or the user's share of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def check_writable(folder: Path) -> None:
    """Raise `OutputError` unless files can be made in `folder`, and its name be kept."""
    name = valid_text(str(folder))
    if name != str(folder):
        raise OutputError(
            f"The name of the folder `{name}` is no UTF-8.", remedy="Rename it, or choose another."
        )
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(
            f"In the folder `{folder}` no file can be made: {error.strerror or error}.",
            remedy="Check its permissions, or choose another one.",
        ) from error


def existing(folder: Path) -> Path:
    """`folder`, or the nearest of those it will lie in that is there: whose disk it will use."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return place
