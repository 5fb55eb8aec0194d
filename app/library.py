"""Models on disk: one folder a model, each with a target and perhaps a drafter.

A list is for people who want to see what they have, so whatever is wrong with one
folder costs no more than its own row. Folders here belong to the user: nothing in
this module writes or removes.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from app import catalog, paths
from app.bundled import Bundled
from app.catalog import KnownModel
from app.errors import ModelFileError, OptionError, SlipstreamError, valid_text
from app.jobs import CancelToken, Progress

_log = logging.getLogger(__name__)


class ModelState(StrEnum):
    READY = "ready"
    BUNDLED = "bundled"  # comes with Slipstream, is converted on first use
    COMING = "coming"  # known, cannot be had in this version
    BROKEN = "broken"  # there, but cannot be used


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One model as lists show it. `bytes` is its size on disk, 0 where it has none.

    All but `path` is text that can be shown and stored.
    """

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


class Library:
    """The models in the folders under `root`, and those that come with Slipstream."""

    def __init__(self, root: Path, bundled: Bundled) -> None:
        self._root = root
        self._bundled = bundled

    @classmethod
    def of_user(cls) -> Self:
        """Models in the user's data, the built-in one converted into the cache."""
        root = paths.models()
        return cls(root, Bundled(paths.assets(), paths.cache() / "models", former=root))

    def models(self) -> tuple[ModelStatus, ...]:
        """Known models first, then the other folders under the root. Reads no contents."""
        known = [self._known_status(model) for model in catalog.MODELS]
        return (*known, *map(self._own_status, self._own_folders()))

    def open(
        self, model: str, progress: Progress | None = None, cancel: CancelToken | None = None
    ) -> Pair:
        """The files of `model`: an id of `models`, or a folder with GGUF files.

        A bundled pair that is not there yet, or damaged, is converted first. Raises
        `OptionError` for an unknown name, `ModelFileError`, `CheckpointError` or
        `OutputError` for what is wrong with files, `JobCancelled`.
        """
        known = catalog.find(model)
        if known is not None and known.bundled:
            place = self._bundled.open(known, progress, cancel)
            return _pair_in(place, model_id=known.id, title=known.title)
        folder = self._folder(model)
        if folder is not None:
            return _pair_in(folder, model_id=model, title=_title(folder))
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
            if _may_be_folder(folder):
                return _folder_status(folder, model.id, model.title)
            return ModelStatus(model.id, model.title, ModelState.COMING, model.coming)
        try:
            made = self._bundled.made(model)
        except SlipstreamError as error:
            return ModelStatus(model.id, model.title, ModelState.BROKEN, str(error))
        if made is not None:
            return _folder_status(made, model.id, model.title)
        reason = "It is converted when it is first used."
        return ModelStatus(model.id, model.title, ModelState.BUNDLED, reason)

    def _own_status(self, folder: Path) -> ModelStatus:
        name = valid_text(folder.name)
        if name != folder.name:
            reason = "The folder's name is no UTF-8. Rename it."
            return ModelStatus(name, name, ModelState.BROKEN, reason, folder)
        # A folder with the name of a bundled model is found by its path alone.
        return _folder_status(folder, name if catalog.find(name) is None else str(folder), name)

    def _own_folders(self) -> list[Path]:
        """Folders under the root that are no known model's, dead links among them."""
        shown = {model.id for model in catalog.MODELS if not model.bundled}
        try:
            entries = sorted(self._root.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            _log.warning("The models in `%s` cannot be listed: %s.", self._root, error.strerror)
            return []
        return [
            entry
            for entry in entries
            if not entry.name.startswith(".") and entry.name not in shown and _may_be_folder(entry)
        ]

    def _folder(self, model: str) -> Path | None:
        """A model's folder under the root, or a folder anywhere."""
        try:
            here = self._root / model
            if model and Path(model).name == model and (here.is_dir() or here.is_symlink()):
                return here
            folder = Path(model).expanduser()
            return folder if model and folder.is_dir() else None
        except (OSError, RuntimeError, ValueError):  # no name for a file, or of no such user
            return None


def _folder_status(folder: Path, model_id: str, title: str) -> ModelStatus:
    try:
        pair = _pair_in(folder, model_id=model_id, title=title)
        return ModelStatus(model_id, title, ModelState.READY, "", folder, pair.bytes)
    except ModelFileError as error:
        return ModelStatus(model_id, title, ModelState.BROKEN, str(error), folder)
    except OSError as error:  # it went away this very moment
        reason = valid_text(f"`{error.filename or folder}` cannot be read: {error.strerror}.")
        return ModelStatus(model_id, title, ModelState.BROKEN, reason, folder)


def _pair_in(folder: Path, *, model_id: str, title: str) -> Pair:
    """The one target and at most one drafter in `folder`, else `ModelFileError`."""
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        raise ModelFileError(
            f"`{folder}` cannot be read: {error.strerror or error}.",
            remedy=_reach(folder),
        ) from error
    targets, drafts = (
        [file for file in files if file.name.startswith(part) and file.suffix == ".gguf"]
        for part in ("target", "draft")
    )
    if not targets:
        raise ModelFileError(
            f"`{folder}` has no `target*.gguf`.",
            remedy="Name a folder that `slipstream convert` wrote.",
        )
    for found in (targets, drafts):
        if len(found) > 1:
            candidates = ", ".join(f"`{file.name}`" for file in found)
            raise ModelFileError(
                f"`{folder}` has more than one candidate: {candidates}.",
                remedy="Keep one target and one drafter in a folder.",
            )
    for file in (*targets, *drafts):
        if not file.is_file():
            raise ModelFileError(f"`{file}` is not a file that can be read.", remedy=_reach(file))
    return Pair(model_id, title, targets[0], drafts[0] if drafts else None)


def _may_be_folder(path: Path) -> bool:
    """Also a link that leads nowhere, and what cannot be looked at: their owner should know."""
    try:
        return path.is_dir() or (path.is_symlink() and not path.exists())
    except OSError:
        return True


def _title(folder: Path) -> str:
    try:
        return valid_text(folder.resolve().name)
    except (OSError, RuntimeError):  # it leads to itself
        return valid_text(folder.name)


def _reach(path: Path) -> str:
    """What to do about a path that leads nowhere."""
    if not path.is_symlink():
        return "Check its permissions."
    return f"It is a link to `{path.readlink()}`: connect that disk, or remove the link."
