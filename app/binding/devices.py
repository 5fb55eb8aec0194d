"""Which devices there are, which can be used, and why not the rest."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref
from typing import Final

from app.binding.library import library, library_path
from app.binding.records import DeviceInfo
from app.binding.status import check
from app.binding.structs import Device, Error

_GPU_BACKENDS: Final = ("cuda", "vulkan", "metal", "hip", "sycl")


def devices() -> tuple[DeviceInfo, ...]:
    """All devices, the CPU first. Without a GPU the last entry says why there is none.

    Raises NativeLibraryError.
    """
    lib = library()
    found = []
    for index in range(lib.slip_device_count()):
        device, error = Device(), Error()
        check(lib.slip_device_get(index, byref(device), byref(error)), error)
        found.append(described(device))
    if not any(d.kind == "gpu" for d in found):
        found.append(DeviceInfo("GPU", "No GPU", "gpu", 0, 0, False, _why_no_gpu()))
    return tuple(found)


def preferred_gpu(known: Sequence[DeviceInfo]) -> DeviceInfo | None:
    """The GPU that is taken where one is wanted: of those that can be used, the largest.

    Where none can be, the first of the others, which has the reason; None without any.
    """
    gpus = [d for d in known if d.kind == "gpu"]
    usable = [d for d in gpus if d.usable]
    if usable:
        return max(usable, key=lambda d: d.memory_total)
    return gpus[0] if gpus else None


def described(raw: Device) -> DeviceInfo:
    return DeviceInfo(
        name=raw.name.decode(),
        description=raw.description.decode("utf-8", "replace").strip(),
        kind="gpu" if raw.kind else "cpu",
        memory_total=raw.memory_total,
        memory_free=raw.memory_free,
        usable=True,
    )


def _why_no_gpu() -> str:
    folder = library_path().parent
    built = [b for b in _GPU_BACKENDS if any(folder.glob(f"*ggml-{b}*"))]
    if not built:
        return "This build has no GPU backend."
    return f"The {' and '.join(built)} backend found no device: is its driver installed?"
