"""What a job has done, on disk: what is written here has happened, and holds."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

from app.catalog import HubSource
from app.download import Listing
from app.errors import OptionError
from app.files import replace_text
from app.passport import Made

FOLDER: Final = ".getting"
"""Beside the models; lists leave out what begins with a dot."""

_NAME: Final = "journal.json"


class Step(StrEnum):
    """In order; the one that is to be done next."""

    LIST = "list"
    DOWNLOAD = "download"
    CONVERT = "convert"
    VERIFY = "verify"
    CHECK = "check"  # load, and self-test
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the job stands still, and at which `Step`; empty where someone stopped it."""

    message: str = ""
    remedy: str = ""
    repair: str = ""
    step: str = ""


@dataclass(frozen=True, slots=True)
class Journal:
    """A job for the model `id`. Roles are `target` and `draft`.

    `here` names, by role, the files that were in the hub's `cache` before the job began, `left`
    the same for each cache that it fetched into before that one.
    """

    id: str
    title: str
    target: HubSource
    draft: HubSource | None
    type: str
    recipe: str = ""
    keep_source: bool = False
    step: Step = Step.LIST
    listings: dict[str, Listing] = field(default_factory=dict)
    here: dict[str, tuple[str, ...]] = field(default_factory=dict)
    cache: str = ""
    left: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    files: dict[str, Made] = field(default_factory=dict)
    failure: Failure = Failure()

    @property
    def sources(self) -> dict[str, HubSource]:
        return {"target": self.target} | ({"draft": self.draft} if self.draft else {})

    def write(self, folder: Path) -> None:
        """Raises `OSError`; what was there before then stays."""
        replace_text(folder / _NAME, json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """The journal in `folder`, None where there is none."""
        try:
            text = (folder / _NAME).read_text(encoding="utf-8")
        except OSError:
            return None
        try:
            journal = cls._of_json(json.loads(text))
            if journal.id != folder.name:  # what it leads to is moved and removed
                raise ValueError(f"it is for `{journal.id}`")
            return journal
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise OptionError(
                f"The journal in `{folder}` cannot be read.",
                remedy="Remove the model, and get it again.",
            ) from error

    @classmethod
    def _of_json(cls, value: dict[str, Any]) -> Self:
        value["target"] = HubSource(**value["target"])
        value["draft"] = value["draft"] and HubSource(**value["draft"])
        value["step"] = Step(value["step"])
        value["listings"] = {r: Listing.of_json(v) for r, v in value["listings"].items()}
        value["here"] = _names(value["here"])
        value["left"] = {cache: _names(here) for cache, here in value.get("left", {}).items()}
        value["files"] = {role: Made(**of) for role, of in value["files"].items()}
        value["failure"] = Failure(**value["failure"])
        return cls(**value)

    def at(self, step: Step, **values: Any) -> Self:
        return replace(self, step=step, **values)


def _names(value: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {role: tuple(names) for role, names in value.items()}
