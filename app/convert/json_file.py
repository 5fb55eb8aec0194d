"""JSON files of a checkpoint, read so that what is missing or wrong is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from app.errors import CheckpointError

_DOWNLOAD: Final = "Download the model again."
_MOST: Final = 2**31 - 1  # of a whole number, for the runtime
_LARGEST: Final = 3.4e38  # of any number, in 32 bits
_SHOWN: Final = 200  # characters of what is wrong


def read_json(path: Path) -> dict[str, Any]:
    """The object in `path`. Raises `CheckpointError` for anything else."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise CheckpointError(f"`{path}` is missing.", remedy=_DOWNLOAD) from error
    except OSError as error:
        raise CheckpointError(
            f"`{path}` cannot be read: {error.strerror or error}.",
            remedy="Check its permissions.",
        ) from error
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        raise CheckpointError(f"`{path}` is not valid JSON: {error}.", remedy=_DOWNLOAD) from error
    if not isinstance(value, dict):
        raise CheckpointError(f"`{path}` does not hold a JSON object.", remedy=_DOWNLOAD)
    return value


@dataclass(frozen=True, slots=True)
class JsonFile:
    """The settings in one file. Every getter raises `CheckpointError` naming file and key."""

    path: Path
    values: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> JsonFile:
        return cls(path, read_json(path))

    @classmethod
    def read_if_there(cls, path: Path) -> JsonFile:
        """Without settings where there is no such file."""
        return cls(path, read_json(path) if path.is_file() else {})

    def over(self, values: Mapping[str, Any]) -> JsonFile:
        """These settings with those of an inner section laid over them."""
        return replace(self, values={**self.values, **values})

    def section(self, key: str) -> dict[str, Any]:
        """The object under `key`, empty if there is none."""
        value = self.values.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return value

    def integer(self, key: str, *, minimum: int = 1, maximum: int = _MOST) -> int:
        value = self._need(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, "a whole number")
        if not minimum <= value <= maximum:
            raise self.wrong(key, f"a whole number from {minimum} to {maximum}")
        return value

    def number(self, key: str) -> float:
        value = self._need(key)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 < value <= _LARGEST
        ):
            raise self.wrong(key, f"a number above 0, up to {_LARGEST}")
        return float(value)

    def items(self, key: str, kind: type) -> list[Any]:
        """The list under `key`, all of whose members are of `kind`."""
        value = self._need(key)
        if not isinstance(value, list) or not all(type(item) is kind for item in value):
            raise self.wrong(key, f"a list of {kind.__name__}")
        return value

    def wrong(self, key: str, wanted: str) -> CheckpointError:
        return CheckpointError(
            f"`{key}` in `{self.path}` is {_shown(self.values.get(key))}, not {wanted}.",
            remedy=_DOWNLOAD,
        )

    def _need(self, key: str) -> Any:
        if self.values.get(key) is None:
            raise CheckpointError(f"`{self.path}` has no `{key}`.", remedy=_DOWNLOAD)
        return self.values[key]


def _shown(value: Any) -> str:
    """Its beginning where it is long: it may be most of the file."""
    try:
        text = repr(value)
    except ValueError:  # of more digits than Python writes
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
