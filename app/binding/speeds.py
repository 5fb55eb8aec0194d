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
    """`rate` in tokens/s; `model` is the same for the same files, all of it on the device.

    The best of a model stays: it is slower where another program has the device too, and only the
    device that is chosen is measured again.
    """
    rates = _rates(device)
    best = max(rate, rates.pop(model, rate))
    kept.keep(_file(), _name(device), dict([*rates.items(), (model, best)][-8:]))


def ratio(device: DeviceInfo, other: DeviceInfo) -> float | None:
    """How many times as fast as the other; None where that was not measured."""
    mine, others = _rates(device), _rates(other)
    both = [mine[model] / others[model] for model in mine.keys() & others.keys()]
    return math.exp(sum(map(math.log, both)) / len(both)) if both else None


def _rates(device: DeviceInfo) -> dict[str, float]:
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        found = kept.find(_file(), _name(device))
        rates = {str(model): float(rate) for model, rate in found.items()}
        return {model: rate for model, rate in rates.items() if 0 < rate < math.inf}
    return {}


def _name(device: DeviceInfo) -> str:
    return f"{device.backend} {device.description}"


def _file() -> Path:
    return paths.cache() / "speeds.json"
