"""The folder for chats and models, where the user wants it: what is in it moves along.

Moving is done when Slipstream starts, before anything has a file in it open. The new place
counts only once all is there; until then, and where something fails, the old one does. Which
one counts is in a small file, since the settings say what is wanted.
"""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
from pathlib import Path

from app import paths
from app.files import replace_text
from app.settings import Settings

_log = logging.getLogger(__name__)


def use_known() -> None:
    """Have `paths` know where the data is; nothing is moved."""
    paths.use_data(_known())


def settle(settings: Settings) -> list[str]:
    """The same, after moving what is wanted elsewhere. What went wrong, as sentences."""
    use_known()
    was = paths.data()
    paths.use_data(None)
    place = Path(settings.data) if settings.data else paths.data()
    problems: list[str] = []
    if place != was:
        try:
            _move(was, place)
        except (OSError, shutil.Error) as error:
            reason = getattr(error, "strerror", None) or error
            problems = [f"`{was}` could not be moved to `{place}`: {reason}. It is used as it is."]
            _log.warning("%s", problems[0])
            place = was
    chosen = None if place == paths.data() else place
    _keep(chosen)
    paths.use_data(chosen)
    return problems


def _move(old: Path, new: Path) -> None:
    """Everything in `old` to `new`: all of it, or nothing."""
    if new.resolve().is_relative_to(old.resolve()):
        raise OSError("it lies within the old folder")
    entries = sorted(old.iterdir()) if old.is_dir() else []
    new.mkdir(parents=True, exist_ok=True)
    taken = [entry.name for entry in entries if (new / entry.name).exists()]
    if taken:
        raise OSError(f"`{taken[0]}` is there already")
    done: list[Path] = []
    try:
        for entry in entries:
            shutil.move(entry, new / entry.name)
            done.append(entry)
    except (OSError, shutil.Error):
        for entry in done:
            shutil.move(new / entry.name, entry)
        raise


def _file() -> Path:
    return paths.config() / "folders.json"


def _known() -> Path | None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return Path(json.loads(_file().read_text(encoding="utf-8"))["data"])
    return None


def _keep(place: Path | None) -> None:
    if _known() == place:
        return
    try:
        replace_text(_file(), json.dumps({"data": str(place)} if place else {}))
    except (OSError, UnicodeError) as error:
        _log.warning("Where the data is could not be kept: %s", error)
