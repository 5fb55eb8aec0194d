"""The devices of the backends that are loaded in this process."""

from __future__ import annotations

import re
from ctypes import byref
from typing import Final

from app.binding.library import library
from app.binding.records import DeviceInfo
from app.binding.status import check
from app.binding.structs import Device, Error

_INTEGRATED: Final = 2  # SLIP_DEVICE_INTEGRATED of the header
_TITLES: Final = {"cuda": "CUDA", "hip": "HIP"}
_BACKENDS: Final = {"mtl": "metal", "rocm": "hip"}  # where ggml's devices have another name


def registered() -> tuple[DeviceInfo, ...]:
    """All of them, the CPU first. Raises NativeLibraryError, and DeviceError without even a CPU."""
    lib = library()
    found = []
    for index in range(max(1, lib.slip_device_count())):
        device, error = Device(), Error()
        check(lib.slip_device_get(index, byref(device), byref(error)), error)
        found.append(described(device))
    return tuple(found)


def described(raw: Device) -> DeviceInfo:
    name = raw.name.decode()
    backend = re.sub(r"\d+$", "", name).lower()
    return DeviceInfo(
        name=name,
        backend=_BACKENDS.get(backend, backend),
        description=raw.description.decode("utf-8", "replace").strip(),
        kind="gpu" if raw.kind else "cpu",
        memory_total=raw.memory_total,
        memory_free=raw.memory_free,
        usable=True,
        integrated=raw.kind == _INTEGRATED,
    )


def missing_gpu(backend: str, reason: str) -> DeviceInfo:
    """The row that says why a backend, or with "" any of them, has no device."""
    title = _TITLES.get(backend, backend.capitalize()) or "GPU"
    return DeviceInfo(title, f"No {title} device", "gpu", 0, 0, False, reason, backend)
