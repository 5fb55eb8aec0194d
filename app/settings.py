"""The user's settings: one frozen, validated value in one readable TOML file.

A file that is no TOML is set aside as ``.broken`` and the defaults are used; a value
that cannot be used is replaced by its default. Neither stops the start: both are
logged, and `load` gives them back to be shown. What a newer Slipstream wrote is kept.
Plain strings, so that the engine's words are not needed to read a file.
"""

from __future__ import annotations

import datetime
import json
import logging
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_type_hints

from app import limits
from app.errors import OptionError, OutputError
from app.files import replace_text, set_aside
from app.limits import Range

VERSION: Final = 4
_UNCHOSEN: Final = {"max_tokens": (2, 1024), "n_ctx": (3, 4096)}
"""What versions before that number wrote whether it was chosen or not: a limit of an answer, which
cut thinking, and a context, where now as much is taken as fits."""
_UNPENALISED: Final = (4, 1.5, ((1.0, 20, 0.95, 0.0), (0.7, 20, 0.8, 0.0)))
"""Temperature, top-k, top-p and min-p as Qwen recommends them, which versions before that number
wrote without the presence penalty that belongs to them."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user can choose. Raises `OptionError` for a value it cannot hold.

    `seed` None draws a fresh one for every answer; `block` None leaves the block length to the
    engine, `threads` None their number; `n_ctx` None is as much context as fits, `max_tokens` None
    what that holds, `think_budget` None no limit. All are absent from the file then.
    `draft_backend` is where the drafter runs, "same" beside the target. `kv_type` "auto" keeps
    keys and values as exact as the weights are. `lookup` drafts out of the chat itself where an
    answer repeats it. `loop_guard` stops an answer that repeats itself
    without end. `text_size` is in px, `zoom` in per cent. `language` is a code, "en" for the words
    as they are written in this source, "system" for the desktop's. `models_folder` is empty for
    the one in the user's data, `data` for the system's own place of that; `xet` allows the hub's
    protocol of chunks.
    """

    version: int = VERSION
    theme: Literal["system", "light", "dark"] = "system"
    model: str = "demo"
    backend: Literal["auto", "cpu", "gpu"] = "auto"
    draft_backend: Literal["same", "auto", "cpu", "gpu"] = "same"
    verify: Literal["greedy", "gpu-sample", "host-sample"] = "greedy"
    temperature: float = 0.7
    top_k: int = 20
    top_p: float = 0.8
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repeat_penalty: float = 1.0
    penalty_last_n: int = 64
    seed: int | None = None
    block: int | None = None
    lookup: bool = True
    max_tokens: int | None = None
    n_ctx: int | None = None
    threads: int | None = None
    kv_type: Literal["auto", "f32", "f16", "bf16", "q8_0", "q4_0"] = "auto"
    think: bool = False
    think_budget: int | None = None
    loop_guard: bool = True
    send_with: Literal["enter", "ctrl-enter"] = "enter"
    show_meters: bool = True
    show_sidebar: bool = True
    models_folder: str = ""
    xet: bool = False
    text_size: int = 15
    zoom: int = 100
    language: str = "system"
    wrap_code: bool = True
    data: str = ""

    def __post_init__(self) -> None:
        for name in _HINTS:
            _check(name, getattr(self, name))


class Loaded(NamedTuple):
    """What `load` found: the settings, and a sentence for each thing that was wrong."""

    settings: Settings
    problems: tuple[str, ...] = ()


_HINTS: Final = get_type_hints(Settings)
RANGES: Final[dict[str, Range]] = {
    **{name: range_ for name, range_ in limits.RANGES.items() if name in _HINTS},
    "seed": Range(0, 2**63 - 1),  # the largest integer of TOML
    "text_size": Range(11, 24),
    "zoom": Range(80, 250),
    "max_tokens": replace(limits.RANGES["max_tokens"], least=1),  # none is no answer
}
"""What each number may be, for the checks here and for what the window says."""


def load(path: Path) -> Loaded:
    """The settings in `path`, or the defaults where it has none that can be used."""
    try:
        table = _read(path)
    except FileNotFoundError:
        return Loaded(Settings())
    except OSError as error:
        problem = f"The settings in `{path}` cannot be read ({error.strerror or error})."
        return _reported({}, [f"{problem} The defaults are used."])
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, or nested without end
        return _reported({}, [_set_aside(path, error)])
    return _reported(*_usable(table))


def save(path: Path, settings: Settings) -> None:
    """Replace `path` whole, or leave it as it was and raise `OutputError`.

    Keys in it that this version does not know stay, and a file that cannot be read is set aside.
    """
    chosen = {f.name: getattr(settings, f.name) for f in fields(settings)}
    try:
        table = chosen | _newer(path, chosen)
        lines = [f"{_key(name)} = {_toml(v)}\n" for name, v in table.items() if v is not None]
        replace_text(path, "".join(lines))
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(
            f"The settings cannot be saved to `{path}`: {reason}.",
            remedy="Check the folder's permissions and the free disk space.",
        ) from error


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8-sig"))


def _reported(found: dict[str, Any], problems: list[str]) -> Loaded:
    for problem in problems:
        _log.warning("%s", problem)
    return Loaded(Settings(**found), tuple(problems))


def _usable(table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The entries of `table` that `Settings` can hold, and what is wrong with others."""
    found: dict[str, Any] = {}
    problems: list[str] = []
    if _version(table) > VERSION:
        # Its own keys are no problem then: they wait for that version.
        _log.info("The settings are of a newer Slipstream (version %s).", table["version"])
    version = _version(table)
    for name, (since, value) in _UNCHOSEN.items():
        if version < since and table.get(name) == value:
            table = {other: kept for other, kept in table.items() if other != name}
    since, penalty, usual = _UNPENALISED
    if version < since and str(table.get("model")).startswith("qwen3.5-"):
        chosen = tuple(table.get(name) for name in ("temperature", "top_k", "top_p", "min_p"))
        if table.get("verify") == "gpu-sample" and chosen in usual:
            table = table | {"presence_penalty": penalty}
    for name, value in table.items():
        if name == "version":
            continue
        if name not in _HINTS:
            _log.info("The setting `%s` is unknown and not used.", name)
            continue
        try:
            found[name] = _check(name, value)
        except OptionError as error:
            problems.append(f"{error.message} The default is used.")
    return found, problems


def _newer(path: Path, chosen: dict[str, Any]) -> dict[str, Any]:
    """What the file at `path` holds for a newer version: unknown keys, and its number."""
    try:
        table = _read(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:  # edited by hand meanwhile, say
        if path.is_file():
            _log.warning("The settings cannot be read (%s): now `%s`.", error, set_aside(path))
        return {}
    kept = {name: value for name, value in table.items() if name not in chosen}
    return kept | {"version": max(VERSION, _version(table))}


def _version(table: dict[str, Any]) -> int:
    version = table.get("version")
    return version if type(version) is int else VERSION


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
    if isinstance(value, str) and "\0" in value:  # no folder, model or language has that in it
        raise _bad(name, value, "Leave out the NUL in it.")
    if name in RANGES and value is not None and not RANGES[name].holds(value):
        raise _bad(name, value, f"Use {RANGES[name]}.")
    return value


def _bad(name: str, value: Any, remedy: str) -> OptionError:
    return OptionError(f"The setting `{name}` cannot be {value!r}.", remedy=remedy)


def _set_aside(path: Path, error: Exception) -> str:
    """Rename a file that cannot be read, and tell."""
    problem = f"The settings in `{path}` cannot be read ({error}), so the defaults are used."
    try:
        broken = set_aside(path)
    except OSError as failed:
        return f"{problem} The file could not be set aside: {failed.strerror or failed}."
    return f"{problem} The file is kept as `{broken}`."


def _toml(value: Any) -> str:
    """One value in TOML. Tables are inline, since kept keys are few."""
    match value:
        case dict():
            return f"{{{', '.join(f'{_key(name)} = {_toml(v)}' for name, v in value.items())}}}"
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case float():
            return repr(value)  # inf and nan are TOML's own words
        case datetime.date() | datetime.time():  # a datetime is a date
            return value.isoformat()
        case _:
            # JSON's strings, integers and booleans are TOML's too, but for the letter DEL.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", r"\u007f")


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if plain else _toml(name)
