"""What tests of the command line share."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Protocol

from app.engine import Command, FakeEngine, Load


@dataclass(frozen=True)
class Run:
    """What one call of the tool came to."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout; anything beside it is an error."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        assert self.out.count("\n") == 1
        return value


@dataclass
class Recording(FakeEngine):
    """The scripted engine, which remembers what was loaded."""

    loads: list[Load] = field(default_factory=list)

    def submit(self, command: Command) -> None:
        if isinstance(command, Load):
            self.loads.append(command)
        super().submit(command)


class Slipstream(Protocol):
    """Runs the tool with these arguments, as the fixture of this name does."""

    def __call__(self, *argv: str) -> Run: ...
