"""How fast plain decoding was on each device of this machine, kept between runs.

Rates of different models say nothing of their devices, so two devices are compared by the models
that both have answered with.
"""

from __future__ import annotations

import contextlib
import math
import time
from pathlib import Path
from typing import Final

from app import kept, paths
from app.binding.records import DeviceInfo

FASTER: Final = 1.1  # times as fast: less can be the load of another hour
_KEPT: Final = 8  # models of a device
_BELIEVED: Final = 14 * 24 * 3600.0
"""Seconds for which a device is taken to be as it was: it is measured only where it is chosen, and
a game beside it, or an old driver, would keep it from that for ever."""


def remember(device: DeviceInfo, model: str, rate: float, share: float = 1.0) -> None:
    """`rate` in tokens/s; `model` is the same for the same files, `share` how much of its layers
    is on the device, with the others on the CPU.

    The best of a model stays: it is slower where another program has the device too, and only the
    device that is chosen is measured again. Of a share of the layers the last one does.
    """
    kept.keep(_file(), _when(device), time.time())
    if share < 1.0:
        parts = _parts(device)
        parts.pop(model, None)
        kept.keep(
            _file(), _in_part(device), dict([*parts.items(), (model, [share, rate])][-_KEPT:])
        )
        return
    rates = _rates(device)
    best = max(rate, rates.pop(model, rate))
    kept.keep(_file(), _name(device), dict([*rates.items(), (model, best)][-_KEPT:]))


def ratio(device: DeviceInfo, other: DeviceInfo) -> float | None:
    """How many times as fast as the other; None where that was not measured."""
    mine, others = _rates(device), _rates(other)
    both = [mine[model] / others[model] for model in mine.keys() & others.keys()]
    return math.exp(sum(map(math.log, both)) / len(both)) if both else None


def expected(device: DeviceInfo, cpu: DeviceInfo, model: str, share: float) -> float | None:
    """How many times as fast as by the CPU alone a model is expected to decode with a share of its
    layers on the device; None where that was not measured lately.

    A layer is taken to need the same time wherever the others are; what was measured with a share
    of them has in it what it costs to go to and fro.
    """
    if not (rate := _rates(cpu).get(model)) or not _is_lately(device):
        return None
    there = 1 / rate  # seconds of a step
    if share < 1 and (part := _parts(device).get(model)):
        measured, slow = part
        here = max(0.0, (1 / slow - (1 - measured) * there) / measured)
    elif fast := _rates(device).get(model):
        here = 1 / fast
    else:
        return None
    step = share * here + (1 - share) * there
    return there / step if step > 0 else None


def _is_lately(device: DeviceInfo) -> bool:
    measured = kept.find(_file(), _when(device))
    return isinstance(measured, int | float) and abs(time.time() - measured) < _BELIEVED


def _parts(device: DeviceInfo) -> dict[str, tuple[float, float]]:
    """Share and rate by model."""
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        found = kept.find(_file(), _in_part(device))
        parts = {str(model): (float(share), float(rate)) for model, (share, rate) in found.items()}
        return {m: (s, r) for m, (s, r) in parts.items() if 0 < s < 1 and 0 < r < math.inf}
    return {}


def _rates(device: DeviceInfo) -> dict[str, float]:
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        found = kept.find(_file(), _name(device))
        rates = {str(model): float(rate) for model, rate in found.items()}
        return {model: rate for model, rate in rates.items() if 0 < rate < math.inf}
    return {}


def _name(device: DeviceInfo) -> str:
    return f"{device.backend} {device.description}"


def _in_part(device: DeviceInfo) -> str:
    return f"{_name(device)} in part"


def _when(device: DeviceInfo) -> str:
    return f"{_name(device)} measured at"


def _file() -> Path:
    return paths.cache() / "speeds.json"
