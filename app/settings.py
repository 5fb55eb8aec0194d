"""The user's settings: one frozen, validated value in one readable TOML file.

A file that is no TOML is set aside as ``.broken`` and the defaults are used; a value
that cannot be used is replaced by its default. Both are logged, neither stops the
start. Plain strings, so that the engine's words are not needed to read a file.
"""

from __future__ import annotations

import json
import logging
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_type_hints

from app.errors import OptionError, OutputError
from app.files import replace_text

VERSION: Final = 1

_log = logging.getLogger(__name__)

RANGES: Final[dict[str, tuple[float, float]]] = {
    "temperature": (0.0, 5.0),
    "top_k": (0, 1000),
    "top_p": (0.01, 1.0),
    "min_p": (0.0, 0.99),
    "seed": (0, 2**63 - 1),  # the largest integer of TOML
    "block": (1, 64),
    "max_tokens": (1, 262_144),
    "n_ctx": (256, 262_144),
}
"""Least and largest value of each number, for the checks here and for spin boxes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user can choose. Raises `OptionError` for a value it cannot hold.

    `seed` None draws a fresh one for every answer; `block` None leaves the block
    length to the engine. Both are absent from the file then.
    """

    version: int = VERSION
    theme: Literal["system", "light", "dark"] = "system"
    model: str = "demo"
    backend: Literal["auto", "cpu", "gpu"] = "auto"
    verify: Literal["greedy", "gpu-sample", "host-sample"] = "greedy"
    temperature: float = 0.7
    top_k: int = 20
    top_p: float = 0.8
    min_p: float = 0.0
    seed: int | None = None
    block: int | None = None
    max_tokens: int = 1024
    n_ctx: int = 4096
    think: bool = False
    send_with: Literal["enter", "ctrl-enter"] = "enter"
    show_meters: bool = True
    show_sidebar: bool = True

    def __post_init__(self) -> None:
        for name in _HINTS:
            _check(name, getattr(self, name))


_HINTS: Final = get_type_hints(Settings)


def load(path: Path) -> Settings:
    """The settings in `path`, or the defaults where it has none that can be used."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        _log.warning("Default settings are used: %s", error)
        return Settings()
    except ValueError as error:  # no TOML, or no UTF-8
        _set_aside(path, error)
        return Settings()
    return Settings(**_usable(table))


def save(path: Path, settings: Settings) -> None:
    """Replace `path` whole, or leave it as it was and raise `OutputError`."""
    lines = [f"{f.name} = {_toml(getattr(settings, f.name))}" for f in fields(settings)]
    text = "".join(f"{line}\n" for line in lines if not line.endswith(" = "))
    try:
        replace_text(path, text)
    except OSError as error:
        raise OutputError(
            f"The settings cannot be saved to `{path}`: {error.strerror}.",
            remedy="Check the folder's permissions and the free disk space.",
        ) from error


def _usable(table: dict[str, Any]) -> dict[str, Any]:
    """The entries of `table` that `Settings` can hold; the rest is logged."""
    found: dict[str, Any] = {}
    if isinstance(version := table.pop("version", VERSION), int) and version > VERSION:
        _log.warning("The settings are of a newer Slipstream (version %s).", version)
    for name, value in table.items():
        if name not in _HINTS:
            _log.warning("The setting `%s` is unknown and not used.", name)
            continue
        try:
            found[name] = _check(name, value)
        except OptionError as error:
            _log.warning("%s The default is used.", error.message)
    return found


def _check(name: str, value: Any) -> Any:
    """`value` as field `name` holds it, else `OptionError`."""
    hint = _HINTS[name]
    choices = get_args(hint)
    if choices and isinstance(choices[0], str):  # Literal[...]
        if value not in choices:
            raise _bad(name, value, f"Use {', '.join(choices[:-1])} or {choices[-1]}.")
        return value
    kinds = choices or (hint,)
    if float in kinds and type(value) is int:  # `temperature = 1` is meant well
        value = float(value)
    if type(value) not in kinds:
        raise _bad(name, value, "Use a value of the right kind.")
    if name in RANGES and value is not None:
        least, most = RANGES[name]
        if not least <= value <= most:
            raise _bad(name, value, f"Use {least} to {most}.")
    return value


def _bad(name: str, value: Any, remedy: str) -> OptionError:
    return OptionError(f"The setting `{name}` cannot be {value!r}.", remedy=remedy)


def _set_aside(path: Path, error: ValueError) -> None:
    broken = path.with_name(f"{path.name}.broken")
    try:
        path.replace(broken)
    except OSError as failed:
        _log.warning("`%s` cannot be read (%s) nor set aside: %s", path, error, failed)
        return
    _log.warning("`%s` cannot be read (%s); it is kept as `%s`.", path, error, broken)


def _toml(value: str | bool | int | float | None) -> str:
    # JSON's strings, numbers and booleans are TOML's too, but for the letter DEL.
    return "" if value is None else json.dumps(value, ensure_ascii=False).replace("\x7f", r"\u007f")
