"""What tests of the command line share."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol


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


class Slipstream(Protocol):
    """Runs the tool with these arguments, as the fixture of this name does."""

    def __call__(self, *argv: str) -> Run: ...
