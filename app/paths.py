"""Where Slipstream keeps its files.

The folders are those of the operating system, unless ``SLIPSTREAM_HOME`` names one
folder for everything (a portable install, a test). Nothing is created here: who
writes a file makes its folder.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

import platformdirs

HOME_VARIABLE: Final = "SLIPSTREAM_HOME"

_PACKAGE: Final = Path(__file__).resolve().parent
_chosen: Final[dict[str, Path]] = {}  # by the user, in place of the system's
_dirs: Final = platformdirs.PlatformDirs("slipstream", appauthor=False)


def config() -> Path:
    """What the user chose: ``settings.toml``."""
    return _under_home("config") or _dirs.user_config_path


def data() -> Path:
    """What must not be lost: models and conversations."""
    return _chosen.get("data") or _under_home("data") or _dirs.user_data_path


def state() -> Path:
    """What is kept but may be lost: logs."""
    return _under_home("state") or _dirs.user_state_path


def cache() -> Path:
    """What can be made again."""
    return _under_home("cache") or _dirs.user_cache_path


def settings_file() -> Path:
    return config() / "settings.toml"


def presets_file() -> Path:
    return config() / "presets.json"


def chats_file() -> Path:
    return data() / "chats.db"


def models() -> Path:
    """One folder a model."""
    return data() / "models"


def use_data(folder: Path | None) -> None:
    """Have `data` be this folder in this process; None: the one that it is at first."""
    _chosen.clear()
    if folder is not None:
        _chosen["data"] = folder


def log_file() -> Path:
    return state() / "slipstream.log"


def assets() -> Path:
    """Files that come with Slipstream: icons and the demo pair.

    Inside the package where it is installed, as it is in a frozen build; beside it in a checkout.
    """
    inside = _PACKAGE / "assets"
    return inside if inside.is_dir() else _PACKAGE.parent / "assets"


def _under_home(kind: str) -> Path | None:
    home = os.environ.get(HOME_VARIABLE)
    if not home:
        return None
    place = Path(home)
    with contextlib.suppress(RuntimeError):  # `~name` of nobody is a folder's name
        place = place.expanduser()
    return place.resolve() / kind
