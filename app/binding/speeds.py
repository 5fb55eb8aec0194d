"""How fast plain decoding was on each device of this machine, kept between runs.

Rates of different models say nothing of their devices, so two devices are compared by the models
that both have answered with.
"""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

from app import kept, paths
from app.binding.records import DeviceInfo


def remember(device: DeviceInfo, model: str, rate: float) -> None:
    """`rate` in tokens/s; `model` is the same for the same files."""
    rates = _rates(device)
    rates.pop(model, None)
    kept.keep(_file(), _name(device), dict([*rates.items(), (model, rate)][-8:]))


def ratio(device: DeviceInfo, other: DeviceInfo) -> float | None:
    """How many times as fast as the other; None where that was not measured."""
    mine, others = _rates(device), _rates(other)
    both = [mine[model] / others[model] for model in mine.keys() & others.keys()]
    return math.exp(sum(map(math.log, both)) / len(both)) if both else None


def _rates(device: DeviceInfo) -> dict[str, float]:
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        found = kept.find(_file(), _name(device))
        return {str(model): rate for model, rate in found.items() if float(rate) > 0}
    return {}


def _name(device: DeviceInfo) -> str:
    return f"{device.backend} {device.description}"


def _file() -> Path:
    return paths.cache() / "speeds.json"
