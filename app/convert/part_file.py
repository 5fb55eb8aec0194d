"""A file that gets its name when it is whole."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from app.errors import OutputError
from app.files import existing, is_full

_NAME_LIMIT: Final = 255  # bytes of a file name, on most file systems


class PartFile:
    """Room for a file beside its final place; leaving the block without `commit` removes it.

    A part that a killed process left is written over by the next run, as its name is fixed.
    """

    def __init__(self, final: Path) -> None:
        self.final = final
        self.path = final.with_name(_part_name(final.name))

    def __enter__(self) -> Self:
        with output_errors(self.final):
            if self.final.is_dir():
                raise OutputError(f"`{self.final}` is a folder.", remedy="Name a file.")
            self.final.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("wb").close()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def commit(self) -> None:
        """Give the file its name. It must have been written and synced."""
        with output_errors(self.final):
            self.path.replace(self.final)
            _sync_folder(self.final.parent)


@contextlib.contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Turn whatever the operating system objects to writing `path` into `OutputError`."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise OutputError(
                f"The disk is full: `{path}` could not be written.",
                remedy="Free some space or choose another folder, then try again.",
            ) from error
        raise OutputError(
            f"`{path}` cannot be written: {error.strerror or error}.",
            remedy="Choose a folder that you may write to.",
        ) from error


def check_room(folder: Path, needed: int) -> None:
    """Raises `OutputError` unless `needed` bytes are free where `folder` is or will be."""
    place = existing(folder)
    with output_errors(folder):
        free = shutil.disk_usage(place).free
    if free < needed:
        raise OutputError(
            f"`{folder}` has {_gigabytes(free)} GB free, but {_gigabytes(needed)} GB are needed.",
            remedy="Free some space or choose another folder, then try again.",
        )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.3f}"


def _part_name(name: str) -> str:
    part = name + ".part"
    if len(os.fsencode(part)) <= _NAME_LIMIT:
        return part
    return sha256(os.fsencode(name)).hexdigest()[:16] + ".part"


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, where folders can be synced at all."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems cannot, and need not
        pass
    finally:
        os.close(descriptor)
