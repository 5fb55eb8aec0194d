"""Which devices the engine can use, and why not the rest."""

from __future__ import annotations

from app.engine import native
from app.engine.messages import DeviceInfo
from app.engine.params import Backend
from app.errors import DeviceError

_GPU_BACKENDS = ("cuda", "vulkan", "metal", "hip", "sycl")


def devices() -> tuple[DeviceInfo, ...]:
    """All devices, the CPU first. Without a usable GPU the last entry says why.

    Raises NativeLibraryError.
    """
    found = native.devices()
    if any(d.kind == "gpu" for d in found):
        return found
    return (*found, DeviceInfo("GPU", "No GPU", "gpu", 0, 0, usable=False, reason=_why_no_gpu()))


def choose(backend: Backend) -> tuple[DeviceInfo, str]:
    """The device for `backend`, and why it is not a GPU if AUTO wanted one.

    Raises DeviceError if a GPU is asked for and none can be used.
    """
    known = devices()
    cpu = known[0]
    if backend is Backend.CPU:
        return cpu, ""
    gpus = [d for d in known if d.kind == "gpu"]
    usable = [d for d in gpus if d.usable]
    if usable:
        return max(usable, key=lambda d: d.memory_total), ""
    reason = gpus[0].reason
    if backend is Backend.GPU:
        raise DeviceError(f"No GPU can be used: {reason}", remedy="Choose the CPU.")
    return cpu, reason


def _why_no_gpu() -> str:
    folder = native.library_path().parent
    built = [b for b in _GPU_BACKENDS if any(folder.glob(f"*ggml-{b}*"))]
    if not built:
        return "This build has no GPU backend."
    return f"The {' and '.join(built)} backend found no device: is its driver installed?"
