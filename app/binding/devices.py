"""Which devices there are, which can be used, and why not the rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from app.binding import speeds, trials
from app.binding.backends import Trial, backend_libraries, backend_name, load_backend, try_out
from app.binding.records import DeviceInfo
from app.binding.registered import missing_gpu, registered
from app.errors import DeviceError

_NO_BACKEND: Final = "This build has no GPU backend."

_tried: dict[str, Trial] = {}


def devices() -> tuple[DeviceInfo, ...]:
    """All devices, the CPU first; a row for each that cannot be used, with the reason.

    Looks into the folder of backends each time, and tries out what is new there. One thread at
    a time may call it. Raises NativeLibraryError.
    """
    refused: list[DeviceInfo] = []
    for path in backend_libraries():
        key = trials.key(path)
        if key not in _tried:
            _tried[key] = _tried_out(path, key)
        if not _tried[key].usable:
            refused += _tried[key].devices
    found = [*registered(), *refused]
    if not any(d.kind == "gpu" for d in found):
        found.append(missing_gpu("", _NO_BACKEND))
    return tuple(found)


def preferred_gpu(known: Sequence[DeviceInfo]) -> DeviceInfo | None:
    """The GPU that is taken where one is wanted: of those that can be used, a card of its own
    before one within the processor; of several the fastest, where that was measured (`speeds`), or
    the largest.

    An integrated GPU counts the machine's memory as its own, so size alone would prefer it. A
    card that Vulkan and its maker's backend both drive is taken by the latter unless it was slower.
    A software renderer is the last. Where none can be used, the first of the others, which has the
    reason; None without any.
    """
    gpus = [d for d in known if d.kind == "gpu"]
    usable = [d for d in gpus if d.usable]
    if not usable:
        return gpus[0] if gpus else None
    native = {d.description for d in usable if d.backend != "vulkan"}

    def rank(device: DeviceInfo) -> tuple[bool, bool, bool, int]:
        twin = device.backend == "vulkan" and device.description in native
        return (*_type(device), not twin, device.memory_total)

    best, *others = sorted(usable, key=rank, reverse=True)
    for other in others:
        if _type(other) == _type(best) and (speeds.ratio(other, best) or 0.0) > speeds.FASTER:
            best = other
    return best


def _type(device: DeviceInfo) -> tuple[bool, bool]:
    return not device.software, not device.integrated


def _tried_out(path: Path, key: str) -> Trial:
    trial = trials.remembered(key) or try_out(path)
    if trial.usable:
        # Should this process die of it all the same, the next one tries it out again.
        trials.forget(key)
        try:
            load_backend(path)
        except DeviceError as error:
            return Trial(False, (missing_gpu(backend_name(path), error.message),))
    if trial.answered:
        trials.remember(key, trial)
    return trial
