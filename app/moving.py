"""The folder for chats and models, where the user wants it: what is in it moves along.

DESIGN. Moving is done when Slipstream starts, before anything has a file in it open. Which place
counts is in a small file, `folders.json`, since the settings say what is wanted; the move is done
when that file names the new place, and until then the old one is whole and used. All is copied
under a hidden name in the new place (by links, where the disk is the same and knows them: that
takes neither time nor room), then renamed to its names, and they are written down before, so that
a move that was killed in between can be taken back. Only then is the file replaced, and what is
in the old place removed; that is written down in the file, and gone on with at the next start.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app import kept, paths
from app.errors import OutputError
from app.files import replace_text
from app.job.journal import FOLDER
from app.settings import Settings

_COMING: Final = Path(".slipstream-moving")
"""In the new place: what has not all come yet, in `_PARTS`."""

_PARTS: Final = _COMING / "parts"
_NAMES: Final = _COMING / "names.json"
"""What they are called there, once all has come."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Known:
    """`data` None is the system's own place. `names` are still to be removed from `left`."""

    data: Path | None = None
    left: Path | None = None
    names: tuple[str, ...] = ()


def use_known() -> None:
    """Have `paths` know where the data is; nothing is moved."""
    paths.use_data(_known().data)


def is_there() -> bool:
    """Whether the folder for the data is where it was: one on a drive that was taken out is not,
    and what would be written in its place, the drive would hide when it is back."""
    place = _known().data
    return place is None or _holds_anything(place)


def check_there() -> None:
    """Raise `OutputError` where `is_there` says no."""
    if not is_there():
        place = _known().data or paths.data()
        raise OutputError(
            f"`{place}`, where chats and models are, is not there.",
            remedy="Connect its drive and start Slipstream again; until then nothing is kept. If "
            f"it is gone for good, make the folder `{place / 'models'}`.",
        )


def place_of(data: str) -> Path | None:
    """The folder that the setting `data` names, `~` in it too; None where that is no whole path,
    which would be another folder wherever Slipstream is started from."""
    try:
        place = Path(data).expanduser()
    except RuntimeError:  # of no such user
        return None
    return place if place.is_absolute() else None


def settle(settings: Settings) -> list[str]:
    """The same as `use_known`, after moving what is wanted elsewhere. What went wrong, as
    sentences."""
    use_known()
    was = paths.data()
    try:
        check_there()
    except OutputError as error:
        return [str(error)]
    problems = _finish()
    paths.use_data(None)
    place = place_of(settings.data) if settings.data else paths.data()
    if place is None:
        problems.append(
            f"The folder for chats and models cannot be `{settings.data}`. `{was}` is used as it "
            "is. Choose one in the settings, or write its whole path there."
        )
    elif place != was and (model := _at_work(was, settings.models_folder)):
        problems.append(
            f"`{was}` was not moved to `{place}`: another Slipstream is getting `{model}` there. "
            "It is used as it is. Wait until that has ended, or end it, and start Slipstream again."
        )
    elif place != was:
        try:
            _move(was, place, None if place == paths.data() else place)
        except OSError as error:
            problems.append(
                f"`{was}` could not be moved to `{place}`: {error.strerror or error}. "
                "It is used as it is. Choose a folder that is empty, with room for all of it."
            )
        else:
            problems += _finish()
    for problem in problems:
        _log.warning("%s", problem)
    use_known()
    return problems


def _at_work(old: Path, models: str) -> str:
    """The model that a job in `old` is getting right now, which would go on there; empty where
    none is. `models` is the setting of their folder."""
    from filelock import FileLock, Timeout  # the window opens before any job is done

    for root in {old / paths.models().name, old / models}:
        if not root.is_relative_to(old):  # it does not move
            continue
        for lock in root.glob(f"{FOLDER}/*/lock"):
            try:
                with FileLock(lock, timeout=0):
                    pass
            except Timeout:
                return lock.parent.name
            except OSError as error:  # the move will say what is wrong
                _log.info("`%s` cannot be tried: %s.", lock, error.strerror or error)
    return ""


def _move(old: Path, new: Path, chosen: Path | None) -> None:
    """Everything in `old` to `new`, but what is not the data's in either, and have that known: all
    of it, or nothing. What was in `old` stays there for `_finish`."""
    if new.resolve().is_relative_to(old.resolve()):
        raise OSError("it lies within the old folder")
    entries = old.iterdir() if old.is_dir() else ()
    staying = {_COMING.name} | _others(old) | _others(new)
    names = sorted(entry.name for entry in entries if entry.name not in staying)
    new.mkdir(parents=True, exist_ok=True)
    _take_back(new)
    taken = [name for name in names if os.path.lexists(new / name)]
    if taken:
        raise OSError(f"`{taken[0]}` is there already")
    bare = not names and not _holds_anything(new)  # as a place is whose drive is not there
    try:
        (new / _PARTS).mkdir(parents=True)
        for name in names:
            _copy(old / name, new / _PARTS / name, old)
        if bare:
            names = ["models"]
            (new / _PARTS / "models").mkdir()
        replace_text(new / _NAMES, json.dumps(names))
        for name in names:
            (new / _PARTS / name).rename(new / name)
        if hasattr(os, "sync"):
            os.sync()  # the folders too, before the old ones go
        _keep(_Known(chosen, old, tuple(names)))
    except BaseException:
        if _known().left != old:  # else it was done
            with contextlib.suppress(OSError):
                _take_back(new)
        raise


def _others(place: Path) -> set[str]:
    """Names in `place` of what is not the data's. On macOS and Windows settings, log and cache lie
    in the system's same folder, or within it, and are looked for there: in a folder for all, each
    file is theirs that is not of the chats."""
    whole = place.resolve()
    homes = [home.resolve() for home in (paths.config(), paths.state(), paths.cache())]
    chats = f"{paths.chats_file().stem}."
    return {
        entry.name
        for entry in (place.iterdir() if place.is_dir() else ())
        if any(home.is_relative_to(whole / entry.name) for home in homes)
        or (whole in homes and entry.is_file() and not entry.name.startswith(chats))
    }


def _copy(source: Path, into: Path, moves: Path) -> None:
    """A file, a folder or a link, whole on the disk; all in `moves` moves. Raises `OSError`."""
    if source.is_symlink():
        into.symlink_to(_leads(source, moves), source.is_dir())
    elif source.is_dir():
        into.mkdir()
        for entry in source.iterdir():
            _copy(entry, into / entry.name, moves)
        _copy_times(source, into)
    else:
        try:
            os.link(source, into)
        except OSError:  # another disk, or one without links
            shutil.copyfile(source, into)
            with into.open("rb+") as file:
                os.fsync(file.fileno())
            _copy_times(source, into)


def _leads(link: Path, moves: Path) -> Path:
    """Where a link is to lead from its new place: to what comes along, or to what stays."""
    folder, whole = link.parent.resolve(), moves.resolve()
    leads = Path(os.path.normpath(folder / link.readlink()))
    return Path(os.path.relpath(leads, folder)) if leads.is_relative_to(whole) else leads


def _copy_times(source: Path, into: Path) -> None:
    with contextlib.suppress(OSError):  # disks that do not know owners or modes
        shutil.copystat(source, into)


def _take_back(new: Path) -> None:
    """Have `new` as it was before a move that was not done. Raises `OSError`."""
    with contextlib.suppress(FileNotFoundError, ValueError, TypeError, RecursionError):
        for name in json.loads((new / _NAMES).read_text(encoding="utf-8")):
            # The folder may be anybody's: what lies elsewhere was not brought by us.
            if Path(name).name == name and not os.path.lexists(new / _PARTS / name):
                (new / name).rename(new / _PARTS / name)
        (new / _NAMES).unlink()
    _remove(new / _COMING)


def _finish() -> list[str]:
    """Remove what a move that is done has left. What went wrong, as sentences."""
    known = _known()
    if known.left is None:
        return []
    place = known.data or paths.data()
    try:
        (place / _NAMES).unlink(missing_ok=True)
        _remove(place / _COMING)
        for name in known.names:
            if os.path.lexists(place / name):
                _remove(known.left / name)
        _keep(_Known(known.data))
    except OSError as error:
        return [
            f"Chats and models are in `{place}` now, but their copy in `{known.left}` could not be "
            f"removed: {error.strerror or error}. Remove it yourself."
        ]
    return []


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink(missing_ok=True)


def _holds_anything(place: Path) -> bool:
    with contextlib.suppress(OSError):
        return any(place.iterdir())
    return False


def _file() -> Path:
    return paths.config() / "folders.json"


def _known() -> _Known:
    try:
        table = kept.table(_file())
        data, left = (Path(table.get(name, "")) for name in ("data", "left"))
        return _Known(
            data if data.is_absolute() else None,
            left if left.is_absolute() else None,
            tuple(map(str, table.get("names", ()))),
        )
    except TypeError:
        return _Known()


def _keep(known: _Known) -> None:
    """Raises `OSError`."""
    table: dict[str, str | Sequence[str]] = {}
    if known.data:
        table["data"] = str(known.data)
    if known.left:
        table |= {"left": str(known.left), "names": known.names}
    replace_text(_file(), json.dumps(table))
