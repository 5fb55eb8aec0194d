"""Models on disk: one folder a model, each with a target and perhaps a drafter.

A list is for people who want to see what they have, so whatever is wrong with one
folder costs no more than its own row. Folders here belong to the user: nothing is
removed but what `remove` is asked to, and that into the trash.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from app import catalog, kept, moving, paths
from app.bundled import Bundled
from app.catalog import KnownModel
from app.errors import (
    ModelFileError,
    NoModelError,
    OptionError,
    OutputError,
    SlipstreamError,
    valid_text,
)
from app.files import replace_text
from app.job.journal import FOLDER, Failure, Journal, Step
from app.jobs import CancelToken, Progress
from app.model_folder import find_pair, is_gguf, parts
from app.passport import Passport

_LATEST: Final = 253402300799.0  # the last second that has a date, of the year 9999

_log = logging.getLogger(__name__)


class ModelState(StrEnum):
    READY = "ready"
    BUNDLED = "bundled"  # comes with Slipstream, is converted on first use
    AVAILABLE = "available"  # known, is got from the hub
    UNFINISHED = "unfinished"  # a job for it is under way, or stands still
    BROKEN = "broken"  # there, but cannot be used


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One model as lists show it. `bytes` is its size on disk, 0 where it has none.

    All but `path` is text that can be shown and stored. `passport` is None for what was not
    got from the hub, `used` for what was not used yet (seconds since 1970), `failure` for
    what is not unfinished.
    """

    id: str
    title: str
    state: ModelState
    reason: str = ""  # why it is not ready
    path: Path | None = None
    bytes: int = 0
    passport: Passport | None = None
    used: float | None = None
    failure: Failure | None = None

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
        files = [*parts(self.target), *(parts(self.draft) if self.draft else ())]
        return sum(file.stat().st_size for file in files)


class Library:
    """The models in the folders under `root`, and those that come with Slipstream."""

    def __init__(self, root: Path, bundled: Bundled, uses: Path | None = None) -> None:
        """`uses` is the file that tells when a model was last used."""
        self.root = root
        self._bundled = bundled
        self._uses = uses

    @classmethod
    def of_user(cls, folder: str = "") -> Self:
        """Models in `folder`, or else in the user's data; the built-in one in the cache.

        One that is not absolute lies in the data, and moves along with it.
        """
        root = paths.data() / folder if folder else paths.models()
        bundled = Bundled(paths.assets(), paths.cache() / "models", former=paths.models())
        return cls(root, bundled, paths.state() / "models.json")

    @property
    def problem(self) -> str:
        """What is wrong with the folder for models; empty where nothing is."""
        try:
            self.place()
        except OutputError as error:
            return str(error)
        return ""

    def place(self) -> Path:
        """`root`, for what is to be written into it.

        Raises `OutputError` where it is not there, as on a drive that is not connected: what would
        be written in its place, the drive would hide when it is back.
        """
        if self.root.is_relative_to(paths.data()):
            moving.check_there()
        if self.root != paths.models() and not self.root.is_dir():
            raise OutputError(
                f"The folder for models, `{self.root}`, is not there.",
                remedy="Connect its drive, make the folder, or choose another one; the built-in "
                "guide works without it.",
            )
        return self.root

    def models(self) -> tuple[ModelStatus, ...]:
        """Known models first, then the other folders under the root. Reads no weights."""
        going = self._journals()
        rows = [self._known_status(m) for m in catalog.MODELS if m.id not in going]
        rows += [self._unfinished(journal) for journal in going.values()]
        order = {model.id: at for at, model in enumerate(catalog.MODELS)}
        rows.sort(key=lambda row: order.get(row.id, len(order)))
        own = [f for f in self._own_folders() if f.name not in going]
        rows += map(self._own_status, own)
        uses = self._used()
        return tuple(replace(row, used=uses.get(row.id)) for row in rows)

    def open(
        self, model: str, progress: Progress | None = None, cancel: CancelToken | None = None
    ) -> Pair:
        """The files of `model`: an id of `models`, or a folder with GGUF files.

        A bundled pair that is not there yet, or damaged, is converted first. Raises
        `NoModelError` for one that is not here, `ModelFileError`, `CheckpointError` or
        `OutputError` for what is wrong with files, `JobCancelled`.
        """
        known = catalog.find(model)
        if known is not None and known.bundled:
            place = self._bundled.open(known, progress, cancel)
            self._note_use(model)
            return _pair_in(place, model_id=known.id, title=known.title)
        if (journal := self._journals().get(model)) is not None:
            raise NoModelError(
                f"{journal.title} is not finished yet: {journal.failure.message or 'it stopped.'}",
                remedy=f"Continue it, or run `slipstream pull {model}`.",
            )
        folder = self._folder(model)
        if folder is not None:
            passport = Passport.read(folder)
            title = passport.title if passport else _title(folder)
            pair = _pair_in(folder, model_id=model, title=title)
            self._note_use(model)
            return pair
        if known is not None:
            raise NoModelError(
                f"{known.title} is not on this machine.",
                remedy=self.problem
                or f"Get it in the list of models, or run `slipstream pull {known.id}`.",
            )
        raise self._unknown(model)

    def _unknown(self, model: str) -> NoModelError:
        ids = ", ".join(f"`{status.id}`" for status in self.models())
        remedy = f"Use one of {ids}, or a folder with `target*.gguf` in it."
        return NoModelError(
            f"There is no model or folder `{model}`.", remedy=f"{self.problem} {remedy}".lstrip()
        )

    def _note_use(self, model: str) -> None:
        """It is being used now. What cannot be written is not worth an error."""
        if self._uses is None:
            return
        try:
            replace_text(self._uses, json.dumps({**self._used(), model: time.time()}))
        except OSError as error:
            _log.info("`%s` cannot be written: %s.", self._uses, error.strerror)

    def verify(
        self, model: str, progress: Progress | None = None, cancel: CancelToken | None = None
    ) -> None:
        """Whether the files of `model` are still those that were made.

        Raises `ModelFileError` if they are not, or if nothing tells what they should be, and
        `NoModelError` for a name that is none.
        """
        folder = self._folder(model)
        if folder is None and all(status.id != model for status in self.models()):
            raise self._unknown(model)
        passport = None if folder is None else Passport.read(folder)
        if folder is None or passport is None:
            raise ModelFileError(
                f"`{model}` has no passport to compare it with.",
                remedy="Only models that Slipstream got from the hub can be verified.",
            )
        passport.verify(folder, progress, cancel)

    def remove(self, model: str, trash: Callable[[Path], None] | None = None) -> ModelStatus:
        """Move the folder of `model` to the trash; returns what was listed of it.

        Raises `OptionError` for what is no folder of ours, `OutputError`.
        """
        row = next((row for row in self.models() if row.id == model), None)
        if row is None or row.path is None or row.path.parent != self.root:
            going = row is not None and row.state is ModelState.UNFINISHED
            raise OptionError(
                f"There is no model `{model}` that could be removed.",
                remedy=f"`slipstream pull {model} --discard` gives up what is under way."
                if going
                else "`slipstream models` lists those that are here.",
            )
        try:
            if row.path.is_symlink():  # what it leads to is not ours
                row.path.unlink()
            else:
                (trash or _trash)(row.path)
        except OSError as error:
            raise OutputError(
                f"`{row.path}` cannot be moved to the trash: {error.strerror or error}.",
                remedy="Check its permissions, or delete the folder yourself.",
            ) from error
        return row

    def _journals(self) -> dict[str, Journal]:
        """Jobs under way by model; one whose journal is broken is no job."""
        found = {}
        try:
            folders = sorted((self.root / FOLDER).iterdir())
        except OSError:
            return {}
        for folder in folders:
            try:
                journal = Journal.read(folder)
            except SlipstreamError as error:
                _log.warning("%s", error)
                continue
            if journal is not None:
                found[journal.id] = journal
        return found

    def _unfinished(self, journal: Journal) -> ModelStatus:
        reason = f"{journal.failure.message} {journal.failure.remedy}".strip()
        path = self.root / journal.id if journal.step in (Step.CHECK, Step.CLEAN) else None
        return ModelStatus(
            journal.id,
            journal.title,
            ModelState.UNFINISHED,
            reason or "It is not finished yet.",
            path,
            sum(file.bytes for file in journal.files.values()) if path else 0,
            failure=journal.failure,
        )

    def _used(self) -> dict[str, float]:
        uses = kept.table(self._uses) if self._uses else {}
        return {
            name: when
            for name, when in uses.items()
            if isinstance(when, float) and 0 <= when <= _LATEST
        }

    def _known_status(self, model: KnownModel) -> ModelStatus:
        if not model.bundled:
            folder = self.root / model.id
            if _may_be_folder(folder):
                return _folder_status(folder, model.id, model.title)
            return ModelStatus(model.id, model.title, ModelState.AVAILABLE)
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
            entries = sorted(self.root.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            _log.warning("The models in `%s` cannot be listed: %s.", self.root, error.strerror)
            return []
        return [
            entry
            for entry in entries
            if not entry.name.startswith(".") and entry.name not in shown and _may_be_folder(entry)
        ]

    def _folder(self, model: str) -> Path | None:
        """A model's folder under the root, or a folder anywhere."""
        try:
            here = self.root / model
            if model and Path(model).name == model and (here.is_dir() or here.is_symlink()):
                return here
            folder = Path(model).expanduser()
            return folder if model and (folder.is_dir() or is_gguf(folder)) else None
        except (OSError, RuntimeError, ValueError):  # no name for a file, or of no such user
            return None


def _folder_status(folder: Path, model_id: str, title: str) -> ModelStatus:
    try:
        passport = Passport.read(folder)
        title = passport.title if passport else title
        pair = _pair_in(folder, model_id=model_id, title=title)
        if passport is not None:
            passport.check_sizes(folder)
        untried = passport is not None and not passport.checks
        reason = "It has not been tried yet." if untried else ""
        if passport is not None and "draft" in passport.files and pair.draft is None:
            reason = "Its drafter is not there any more: it decodes plainly."
        return ModelStatus(model_id, title, ModelState.READY, reason, folder, pair.bytes, passport)
    except SlipstreamError as error:
        return ModelStatus(model_id, title, ModelState.BROKEN, str(error), folder)
    except OSError as error:  # it went away this very moment
        reason = valid_text(f"`{error.filename or folder}` cannot be read: {error.strerror}.")
        return ModelStatus(model_id, title, ModelState.BROKEN, reason, folder)


def _pair_in(place: Path, *, model_id: str, title: str) -> Pair:
    """The one target and at most one drafter in `place`; raises what `find_pair` raises."""
    found = find_pair(place)
    return Pair(model_id, title, found.target, found.draft)


def _trash(folder: Path) -> None:
    from send2trash import send2trash  # here: on some systems it loads the desktop's libraries

    send2trash(folder)


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
