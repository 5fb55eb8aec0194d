"""What holds for one chat alone, and presets: the same under a name, for any chat.

A system prompt, and those of the settings that shape an answer. What is not chosen here is
as it is in the settings.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from app import kept
from app.errors import OptionError, OutputError
from app.files import replace_text, set_aside
from app.settings import Settings

CHOICES: Final = (
    "think",
    "think_budget",
    "verify",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repeat_penalty",
    "penalty_last_n",
    "max_tokens",
)
"""Settings that a chat can have of its own."""

VERSION: Final = 1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """`preset` is the name that they were taken from, empty where they are of no preset.

    `values` are pairs of a setting and what it is here, in the order of `CHOICES`.
    """

    system: str = ""
    values: tuple[tuple[str, Any], ...] = ()
    preset: str = ""

    def get(self, name: str) -> Any:
        """The chat's own value, None where it has none."""
        return dict(self.values).get(name)

    def choose(self, name: str, value: Any) -> Self:
        """With this value, or without one of its own where it is None.

        Raises `OptionError` for what the setting cannot be.
        """
        values = {**dict(self.values), name: value}
        kept = tuple((n, values[n]) for n in CHOICES if values.get(n) is not None)
        changed = replace(self, values=kept)
        changed.over(Settings())
        return changed

    def over(self, settings: Settings) -> Settings:
        """The settings as they are for this chat."""
        return replace(settings, **dict(self.values)) if self.values else settings

    def json(self) -> str:
        """Empty where nothing is chosen."""
        return "" if self == type(self)() else json.dumps(self.table())

    def table(self) -> dict[str, Any]:
        return {"system": self.system, "preset": self.preset, **dict(self.values)}

    @classmethod
    def of_json(cls, text: str) -> Self:
        """What `json` wrote, less what cannot be used."""
        try:
            return cls.of_table(json.loads(text))
        except (ValueError, RecursionError):
            return cls()

    @classmethod
    def of_table(cls, table: Any) -> Self:
        if not isinstance(table, dict):
            return cls()
        result = cls(str(table.get("system", "")), (), str(table.get("preset", "")))
        for name in CHOICES:
            try:
                result = result.choose(name, table.get(name))
            except OptionError as error:
                _log.warning("%s It is as in the settings.", error.message)
        return result


class Presets(NamedTuple):
    """By their names; `problem` is a sentence where the file could not be read."""

    presets: dict[str, ChatOptions]
    problem: str = ""


def load(path: Path) -> Presets:
    """The presets in a file. One that is no table of them is set aside, and said."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        presets = {str(name): ChatOptions.of_table(t) for name, t in table["presets"].items()}
        return Presets({n: replace(p, preset=n) for n, p in presets.items()})
    except FileNotFoundError:
        return Presets({})
    except OSError as error:
        return Presets({}, f"The presets in `{path}` cannot be read: {error.strerror}.")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        _log.warning("The presets in `%s` cannot be read: %s", path, error)
        try:
            broken = set_aside(path)
        except OSError:
            return Presets({}, f"The presets in `{path}` cannot be read.")
        return Presets(
            {}, f"The presets in `{path}` cannot be read. The file is kept as `{broken}`."
        )


def save(path: Path, presets: dict[str, ChatOptions]) -> None:
    """Raises `OutputError`; the file is as it was then. One that cannot be read is set aside.

    What a newer version wrote that this one does not know stays, of a preset as long as it does.
    """
    try:
        if load(path).problem and path.is_file():
            set_aside(path)
        was = kept.table(path)
        number, before = was.get("version"), was.get("presets", {})
        version = max(VERSION, number) if type(number) is int else VERSION
        tables = {n: _newer(before.get(n)) | preset.table() for n, preset in presets.items()}
        table = was | {"version": version, "presets": tables}
        replace_text(path, json.dumps(table, indent=2))
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(
            f"The presets cannot be saved to `{path}`: {reason}.",
            remedy="Check the folder's permissions and the free disk space.",
        ) from error


def _newer(table: Any) -> dict[str, Any]:
    """What a preset in a file holds for a newer version."""
    known = ("system", "preset", *CHOICES)
    pairs = table.items() if isinstance(table, dict) else ()
    return {name: value for name, value in pairs if name not in known}
