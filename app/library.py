"""Models on disk: one folder a model, each with a target and perhaps a drafter.

A pair is made in a hidden folder beside its place and renamed into it as the last
step, so that a folder with a model's name is whole. ``pair.json`` in it tells the
sizes, which are compared whenever the pair is opened.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from app import catalog
from app.catalog import KnownModel
from app.errors import CheckpointError, ModelFileError, OptionError, OutputError
from app.jobs import CancelToken

_log = logging.getLogger(__name__)

RECIPE: Final = "1-f32"
"""How a bundled pair is converted; another value makes every installed copy anew.

F32, because the demo is small and its answers are compared with the training code.
"""

_MANIFEST: Final = "pair.json"
_PARTS: Final = ("target", "draft")  # of a pair: folders of a source, names of GGUF files
_PART_PREFIX: Final = ".part-"
_ABANDONED_AFTER: Final = 600.0  # seconds without a write, when no one can be at it


class ModelState(StrEnum):
    READY = "ready"
    BUNDLED = "bundled"  # comes with Slipstream, is converted on first use
    COMING = "coming"  # known, cannot be had in this version
    BROKEN = "broken"  # there, but incomplete


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One model as lists show it. `bytes` is its size on disk, 0 where it has none."""

    id: str
    title: str
    state: ModelState
    reason: str = ""  # why it is not ready
    path: Path | None = None
    bytes: int = 0

    @property
    def usable(self) -> bool:
        return self.state in (ModelState.READY, ModelState.BUNDLED)


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a model that is ready to be loaded."""

    id: str
    title: str
    target: Path
    draft: Path | None

    @property
    def bytes(self) -> int:
        return sum(file.stat().st_size for file in (self.target, self.draft) if file)


Progress = Callable[[float], None]  # 0 to 1
Convert = Callable[[Path, Path, Path, Progress | None, CancelToken | None], object]


class Library:
    """The models under `root`, and those that `assets` brings along."""

    def __init__(self, root: Path, assets: Path, convert: Convert | None = None) -> None:
        self._root = root
        self._assets = assets
        self._convert = convert or _convert

    def models(self) -> tuple[ModelStatus, ...]:
        """Known models first, then the other folders under the root."""
        known = [self._known_status(model) for model in catalog.MODELS]
        return (*known, *(_folder_status(folder) for folder in self._own_folders()))

    def open(
        self, model: str, progress: Progress | None = None, cancel: CancelToken | None = None
    ) -> Pair:
        """The files of `model`: an id of `models`, or a folder with GGUF files.

        A bundled pair that is not there yet is converted first. Raises `OptionError`
        for an unknown name, `ModelFileError`, `CheckpointError` or `OutputError` for
        what is wrong with files, `JobCancelled`.
        """
        known = catalog.find(model)
        if known is not None and known.bundled:
            return self._open_bundled(known, progress, cancel)
        folder = self._folder(model)
        if folder is not None:
            return _pair_in(folder, model_id=model, title=folder.resolve().name)
        if known is not None:
            raise OptionError(f"{known.title} is not on this machine.", remedy=known.coming)
        ids = ", ".join(f"`{status.id}`" for status in self.models())
        raise OptionError(
            f"There is no model or folder `{model}`.",
            remedy=f"Use one of {ids}, or a folder with `target*.gguf` in it.",
        )

    def _known_status(self, model: KnownModel) -> ModelStatus:
        if not model.bundled:
            folder = self._root / model.id
            if folder.is_dir():
                return _folder_status(folder, title=model.title)
            return ModelStatus(model.id, model.title, ModelState.COMING, model.coming)
        try:
            place = self._place(model)
        except CheckpointError as error:
            return ModelStatus(model.id, model.title, ModelState.BROKEN, str(error))
        if _is_whole(place):
            return replace(_folder_status(place, title=model.title), id=model.id)
        reason = "It is converted when it is first used."
        return ModelStatus(model.id, model.title, ModelState.BUNDLED, reason)

    def _folder(self, model: str) -> Path | None:
        """A model's folder under the root, or a folder anywhere; not for bundled ones."""
        here = [self._root / model] if Path(model).name == model else []
        try:
            folders = (*here, Path(model).expanduser())
            return next((f for f in folders if model and f.is_dir()), None)
        except (OSError, RuntimeError):  # too long for a name, or of no such user
            return None

    def _own_folders(self) -> list[Path]:
        """Folders under the root that are no known model's."""
        if not self._root.is_dir():
            return []
        bundled = tuple(f"{model.id}-" for model in catalog.MODELS if model.bundled)
        return [
            folder
            for folder in sorted(self._root.iterdir())
            if folder.is_dir()
            and not folder.name.startswith((".", *bundled))
            and catalog.find(folder.name) is None
        ]

    def _place(self, model: KnownModel) -> Path:
        """Where a bundled pair belongs: named after the content it is made from."""
        source = self._assets / model.id
        digest = hashlib.sha256(RECIPE.encode())
        try:
            if not all((source / part / "config.json").is_file() for part in _PARTS):
                raise FileNotFoundError(errno.ENOENT, "files are missing")
            for file in sorted(f for p in _PARTS for f in (source / p).rglob("*") if f.is_file()):
                with file.open("rb") as stream:
                    content = hashlib.file_digest(stream, "sha256").hexdigest()
                digest.update(f"{file.relative_to(source).as_posix()} {content}\n".encode())
        except OSError as error:
            raise CheckpointError(
                f"The built-in model in `{source}` cannot be read: {error.strerror}.",
                remedy="Install Slipstream anew.",
            ) from error
        return self._root / f"{model.id}-{digest.hexdigest()[:16]}"

    def _open_bundled(
        self, model: KnownModel, progress: Progress | None, cancel: CancelToken | None
    ) -> Pair:
        place = self._place(model)
        if not _is_whole(place):
            try:
                self._make(self._assets / model.id, place, progress, cancel)
            except OSError as error:
                raise OutputError(
                    f"`{place}` cannot be written: {error.strerror or error}.",
                    remedy=f"Check the permissions and the free space of `{self._root}`.",
                ) from error
        self._remove_others(model, place)
        return _pair_in(place, model_id=model.id, title=model.title)

    def _make(
        self, source: Path, place: Path, progress: Progress | None, cancel: CancelToken | None
    ) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=_PART_PREFIX, dir=self._root))
        try:
            target, draft = (source / name for name in _PARTS)
            self._convert(target, draft, part, progress, cancel)
            sizes = {file.name: file.stat().st_size for file in part.iterdir()}
            (part / _MANIFEST).write_text(json.dumps(sizes, indent=2), encoding="utf-8")
            shutil.rmtree(place, ignore_errors=True)  # there, but not whole
            try:
                part.rename(place)
            except OSError:
                if not _is_whole(place):  # else another process was faster
                    raise
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _remove_others(self, model: KnownModel, place: Path) -> None:
        """Drop copies made from another source, and what a killed process left."""
        for folder in self._root.iterdir():
            if folder.name.startswith(f"{model.id}-") and folder != place:
                _log.info("Removing the outdated `%s`.", folder)
                shutil.rmtree(folder, ignore_errors=True)
            elif folder.name.startswith(_PART_PREFIX) and _is_abandoned(folder):
                _log.info("Removing the unfinished `%s`.", folder)
                shutil.rmtree(folder, ignore_errors=True)


def _convert(
    target: Path, draft: Path, out: Path, progress: Progress | None, cancel: CancelToken | None
) -> None:
    # Imported here: numpy and gguf are not needed to open a pair that is there.
    from app.convert import WeightType, convert_pair

    def on_bytes(done: int, total: int, _tensor: str) -> None:
        if progress is not None:
            progress(done / total)

    convert_pair(target, draft, out, WeightType.F32, progress=on_bytes, cancelled=cancel)


def _folder_status(folder: Path, title: str = "") -> ModelStatus:
    title = title or folder.name
    try:
        pair = _pair_in(folder, model_id=folder.name, title=title)
    except ModelFileError as error:
        return ModelStatus(folder.name, title, ModelState.BROKEN, str(error), folder)
    return ModelStatus(folder.name, title, ModelState.READY, "", folder, pair.bytes)


def _pair_in(folder: Path, *, model_id: str, title: str) -> Pair:
    """The one target and at most one drafter in `folder`, else `ModelFileError`."""
    targets, drafts = (sorted(folder.glob(f"{name}*.gguf")) for name in _PARTS)
    if not targets:
        raise ModelFileError(
            f"`{folder}` has no `target*.gguf`.",
            remedy="Name a folder that `slipstream convert` wrote.",
        )
    for files in (targets, drafts):
        if len(files) > 1:
            names = ", ".join(f"`{file.name}`" for file in files)
            raise ModelFileError(
                f"`{folder}` has more than one candidate: {names}.",
                remedy="Keep one target and one drafter in a folder.",
            )
    if (folder / _MANIFEST).is_file() and not _is_whole(folder):
        raise ModelFileError(
            f"The files in `{folder}` do not have the sizes they were written with.",
            remedy="Remove the folder and convert the model again.",
        )
    return Pair(model_id, title, targets[0], drafts[0] if drafts else None)


def _is_whole(folder: Path) -> bool:
    """Whether all files that the manifest lists are there in their full length."""
    try:
        sizes = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        return bool(sizes) and all(
            (folder / name).stat().st_size == size for name, size in sizes.items()
        )
    except (OSError, ValueError, AttributeError):
        return False


def _is_abandoned(folder: Path) -> bool:
    try:
        newest = max(f.stat().st_mtime for f in (folder, *folder.iterdir()))
    except OSError:  # its owner removes it this very moment
        return False
    return time.time() - newest > _ABANDONED_AFTER
