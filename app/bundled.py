"""The pair that comes with Slipstream: its checkpoints, converted into the cache on first use.

A copy is made in a hidden folder beside its place and renamed into it as the last step.
The place is named after the content it is made from, so a copy of other weights is never
taken for it; ``pair.json`` in it tells what its files must be. Whatever is missing, cut or
damaged is made anew.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from app import kept
from app.catalog import KnownModel
from app.errors import CheckpointError, OutputError
from app.jobs import CancelToken, Progress

_log = logging.getLogger(__name__)

RECIPE: Final = "1-f32"
"""How the pair is converted; another value makes every copy anew.

F32, because the demo is small and its answers are compared with the training code.
"""

Convert = Callable[[Path, Path, Path, Progress | None, CancelToken | None], object]
"""Called with the checkpoints of target and drafter, and the folder for the GGUF files."""

_MANIFEST: Final = "pair.json"
_LOCK: Final = ".lock"
_LOCK_WAIT: Final = 60.0  # seconds; a copy takes one
_PARTS: Final = ("target", "draft")  # folders of the source
_PART_PREFIX: Final = ".part-"
_CHUNK: Final = 1 << 18  # bytes read at once
_ABANDONED_AFTER: Final = 600.0  # seconds without a write, when no one can be at it


class Bundled:
    """Pairs with checkpoints in `assets` / id, and their copies in `folder`.

    An earlier version kept its copies in `former`, among the user's own models.
    """

    def __init__(
        self,
        assets: Path,
        folder: Path,
        *,
        former: Path | None = None,
        convert: Convert | None = None,
    ) -> None:
        self._assets = assets
        self._folder = folder
        self._former = former
        self._convert = convert or _convert

    def made(self, model: KnownModel) -> Path | None:
        """The copy that `open` would most likely give; looks at sizes and times alone.

        Raises `CheckpointError` if there is nothing to make one from.
        """
        wanted = self._stats(model)
        return next(
            (c for c in self._copies(model) if _is_made_of(c, wanted) and _sized(c)),
            None,
        )

    def open(
        self, model: KnownModel, progress: Progress | None = None, cancel: CancelToken | None = None
    ) -> Path:
        """A folder with a whole copy, made now if there is none.

        Raises `CheckpointError` or `OutputError` for what is wrong with files, `JobCancelled`.
        """
        known = self.made(model)
        if known is not None and _untouched(known):  # nothing was written since it was looked at
            self._clean(model, known)
            return known
        place = self._place(model)
        try:
            if not _is_whole(place):
                with self._alone():  # of two that begin at once, the second finds it made
                    if not _is_whole(place):
                        self._make(model, place, progress, cancel)
        except OSError as error:
            raise OutputError(
                f"`{place}` cannot be written: {error.strerror or error}.",
                remedy=f"Check the permissions and the free space of `{self._folder}`.",
            ) from error
        if not _is_made_of(place, self._stats(model)) or not _untouched(place):
            # The same, laid anew.
            with contextlib.suppress(OSError):  # then `made` does not know it, that is all
                self._describe(model, place)
        self._clean(model, place)
        return place

    def _sources(self, model: KnownModel) -> list[Path]:
        source = self._assets / model.id
        if not all((source / part / "config.json").is_file() for part in _PARTS):
            raise FileNotFoundError(errno.ENOENT, "files are missing")
        return sorted(f for p in _PARTS for f in (source / p).rglob("*") if f.is_file())

    def _stats(self, model: KnownModel) -> dict[str, list[int]]:
        """Size and times of each source file."""
        source = self._assets / model.id
        with _source_errors(source):
            return {
                file.relative_to(source).as_posix(): _touched(file) for file in self._sources(model)
            }

    def _place(self, model: KnownModel) -> Path:
        source = self._assets / model.id
        digest = hashlib.sha256(RECIPE.encode())
        with _source_errors(source):
            for file in self._sources(model):
                name = file.relative_to(source).as_posix()
                digest.update(f"{name} {_sha256(file)}\n".encode())
        return self._folder / f"{model.id}-{digest.hexdigest()[:16]}"

    def _copies(self, model: KnownModel) -> list[Path]:
        name = re.compile(rf"{re.escape(model.id)}-[0-9a-f]{{16}}")
        return [folder for folder in _folders(self._folder) if name.fullmatch(folder.name)]

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        from filelock import FileLock, Timeout  # a start that finds its copy needs none

        self._folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._folder / _LOCK)
        with contextlib.suppress(Timeout, NotImplementedError):  # a disk without locks
            lock.acquire(timeout=_LOCK_WAIT)
        try:
            yield
        finally:
            lock.release()

    def _make(
        self,
        model: KnownModel,
        place: Path,
        progress: Progress | None,
        cancel: CancelToken | None,
    ) -> None:
        part = Path(tempfile.mkdtemp(prefix=_PART_PREFIX, dir=self._folder))
        try:
            target, draft = (self._assets / model.id / name for name in _PARTS)
            self._convert(target, draft, part, progress, cancel)
            self._describe(model, part)
            shutil.rmtree(place, ignore_errors=True)  # there, but not whole
            try:
                part.rename(place)
            except OSError:
                if not _is_whole(place):  # else another process, which was not to be waited for
                    raise
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _describe(self, model: KnownModel, copy: Path) -> None:
        """Write down what the files of `copy` are and what they were made from."""
        files = sorted(file for file in copy.iterdir() if file.name != _MANIFEST)
        manifest = {
            "recipe": RECIPE,
            "source": self._stats(model),
            "files": {
                f.name: {"bytes": f.stat().st_size, "crc32": _crc32(f), "touched": _touched(f)}
                for f in files
            },
        }
        (copy / _MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")

    def _clean(self, model: KnownModel, place: Path) -> None:
        """Drop copies made from another source, and what a killed process left."""
        for folder in self._copies(model):
            if folder != place:
                _log.info("Removing the outdated `%s`.", folder)
                shutil.rmtree(folder, ignore_errors=True)
        for folder in _folders(self._folder):
            if folder.name.startswith(_PART_PREFIX) and _is_abandoned(folder):
                _log.info("Removing the unfinished `%s`.", folder)
                shutil.rmtree(folder, ignore_errors=True)
        if self._former is not None:
            _remove_former(self._former / place.name)


@contextlib.contextmanager
def _source_errors(source: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"The built-in model in `{source}` cannot be read: {error.strerror}.",
            remedy="Install Slipstream anew.",
        ) from error


def _convert(
    target: Path, draft: Path, out: Path, progress: Progress | None, cancel: CancelToken | None
) -> None:
    # Imported here: numpy and gguf are not needed to open a pair that is there.
    from app.convert import WeightType, convert_pair

    def on_bytes(done: int, total: int, _tensor: str) -> None:
        if progress is not None:
            progress(done / total)

    convert_pair(target, draft, out, WeightType.F32, progress=on_bytes, cancelled=cancel)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _crc32(file: Path) -> int:
    """Against accidents: a third of the time of a digest, or less."""
    crc, chunk = 0, memoryview(bytearray(_CHUNK))
    with file.open("rb", buffering=0) as stream:
        while count := stream.readinto(chunk):
            crc = zlib.crc32(chunk[:count], crc)
    return crc


def _folders(parent: Path) -> list[Path]:
    try:
        return sorted(f for f in parent.iterdir() if f.is_dir() and not f.is_symlink())
    except OSError:  # there is none yet, or it is no folder: making one will tell
        return []


def _manifest(copy: Path) -> dict[str, Any]:
    """What `copy` says of itself; empty where that is nothing."""
    return kept.table(copy / _MANIFEST)


def _is_made_of(copy: Path, source: dict[str, list[int]]) -> bool:
    """Whether `copy` was made from these files, as it would be made now."""
    manifest = _manifest(copy)
    return manifest.get("recipe") == RECIPE and manifest.get("source") == source


def _sized(copy: Path) -> bool:
    """Whether all files of `copy` are there in their full length."""
    try:
        files = _manifest(copy)["files"]
        return bool(files) and all(
            (copy / name).stat().st_size == file["bytes"] for name, file in files.items()
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def _touched(file: Path) -> list[int]:
    """Its size, and when it was last written: where that is as it was, so is what it holds."""
    stat = file.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def _untouched(copy: Path) -> bool:
    """Whether no file of `copy` was written since its manifest was."""
    try:
        files = _manifest(copy)["files"]
        return all(_touched(copy / name) == file["touched"] for name, file in files.items())
    except (OSError, LookupError, TypeError, AttributeError):
        return False


def _is_whole(copy: Path) -> bool:
    """Whether all files of `copy` hold what was written."""
    if not _sized(copy):
        return False
    try:
        files = _manifest(copy)["files"]
        return all(_crc32(copy / name) == file["crc32"] for name, file in files.items())
    except (OSError, LookupError, TypeError):
        return False


def _remove_former(copy: Path) -> None:
    """Remove a copy that an earlier version made: by its name and all that is in it, ours.

    Its manifest was the sizes of its files alone.
    """
    sizes = _manifest(copy)
    try:
        found = {file.name: file.stat().st_size for file in copy.iterdir()}
        del found[_MANIFEST]
        if found != sizes or copy.is_symlink():
            return
        _log.info("Removing the former `%s`.", copy)
        for name in (*found, _MANIFEST):
            (copy / name).unlink()
        copy.rmdir()
    except (OSError, KeyError):  # there is none, or not only ours
        return


def _is_abandoned(folder: Path) -> bool:
    try:
        newest = max(f.stat().st_mtime for f in (folder, *folder.iterdir()))
    except OSError:  # its owner removes it this very moment
        return False
    return time.time() - newest > _ABANDONED_AFTER
