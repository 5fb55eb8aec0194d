"""What rounds cost on this device with this pair, measured once and kept."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

from app import kept
from app.binding import Costs


def load(path: Path, name: str) -> Costs | None:
    with contextlib.suppress(ValueError, TypeError, KeyError):
        found = kept.find(path, name)
        costs = Costs(
            float(found["plain"]),
            float(found["draft"]),
            float(found["draft_one"]),
            tuple(map(float, found["verify"])),
        )
        if min(costs.plain, costs.draft, costs.draft_one) > 0 and min(costs.verify) >= 0:
            return costs
    return None


def save(path: Path, name: str, costs: Costs) -> None:
    kept.keep(path, name, dataclasses.asdict(costs))
