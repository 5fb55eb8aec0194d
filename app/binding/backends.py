"""GPU backends in libraries of their own: where they lie, tried in a child process, loaded once.

DESIGN: such a library may belong to another ggml, be cut off, lack its driver, or take the process
down while it looks for devices. So what came as an archive is compared with what that says of its
files (when it is new, has changed, or the machine was started), and it is first loaded by a process
that may die; what that process tells of its devices, or how it ended, is the answer. Only a library
that came back with devices is loaded here.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app import frozen
from app.binding import addon
from app.binding.library import library, library_path, talkative
from app.binding.records import DeviceInfo
from app.binding.registered import missing_gpu, registered
from app.errors import DeviceError, SlipstreamError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_PATTERN: Final = {"win32": "ggml-*.dll", "darwin": "libggml-*.dylib"}
_SECONDS: Final = 30.0  # a first start of a driver may compile its shaders
_GRACE: Final = 2.0  # to leave, once it has answered
# Without it the Vulkan backend leaves software renderers out.
_SEEN: Final = "GGML_VK_VISIBLE_DEVICES"
_SOFTWARE: Final = (
    "A software renderer is no graphics card: it computes on the processor, slower than that does "
    f"by itself. To try it out, start with {_SEEN}=0."
)


@dataclass(frozen=True, slots=True)
class Trial:
    """What a backend's library came back with: the devices that can be used, or why none can."""

    usable: bool
    devices: tuple[DeviceInfo, ...]
    # False: it died, kept silent or could not be loaded, which may be otherwise the next time: what
    # it lacks of the system can come without its file being touched.
    answered: bool = True


def backends_folder() -> Path:
    """The one folder that is looked into. Raises NativeLibraryError without a native library."""
    return library_path().parent / "backends"


def backend_libraries() -> tuple[Path, ...]:
    """The libraries that lie there, by name, but for variants of the CPU's: of those the engine
    loads one by itself."""
    pattern = _PATTERN.get(sys.platform, "libggml-*.so")
    found = sorted(backends_folder().glob(pattern))
    return tuple(path for path in found if not backend_name(path).startswith("cpu"))


def backend_name(path: Path) -> str:
    """``vulkan`` of ``libggml-vulkan.so``."""
    return re.sub(r"^(lib)?ggml-", "", path.stem)


def try_out(path: Path) -> Trial:
    """Loads a backend in a process of its own. Takes as long as its driver does."""
    try:
        addon.check(path)
    except DeviceError as error:
        return _silent(path, error.message)
    trial = _apart(path, {})
    if not trial.devices and backend_name(path) == "vulkan" and _SEEN not in os.environ:
        hidden = _apart(path, {_SEEN: "0"})
        if hidden.usable and hidden.devices:
            return Trial(
                False, tuple(replace(d, usable=False, reason=_SOFTWARE) for d in hidden.devices)
            )
    if trial.usable and not trial.devices:
        return _none(path, "It found no device: is its driver installed?")
    return trial


@cache
def load_backend(path: Path) -> None:
    """Adds a backend that was tried out to this process, for good. Raises DeviceError."""
    library()  # brings what backends link to
    try:
        ctypes.CDLL(str(path))  # says what is missing; ggml only that it failed
    except OSError as error:
        raise DeviceError(f"It cannot be loaded: {error}.", remedy="Use the CPU.") from error
    ggml = ctypes.CDLL(str(_ggml()))
    ggml.ggml_backend_load.argtypes = [ctypes.c_char_p]
    ggml.ggml_backend_load.restype = ctypes.c_void_p
    with talkative() as said:  # what a driver has found
        loaded = ggml.ggml_backend_load(os.fsencode(path))
    if not loaded:
        raise DeviceError(
            "It is no backend of this version of Slipstream, or its driver does not start"
            + (f": {said[-1][:200]}" if said else "."),
            remedy=f"Update the graphics card's driver. If that is no help: {frozen.REPAIR}",
        )


def _ggml() -> Path:
    """The library that keeps the list of backends, beside ours."""
    name = {"win32": "ggml.dll", "darwin": "libggml.dylib"}.get(sys.platform, "libggml.so")
    return library_path().with_name(name)


def _apart(path: Path, environment: Mapping[str, str]) -> Trial:
    import multiprocessing  # here: a start that finds all tried already does without

    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(
        target=_child, args=(theirs, path, environment), name="backend", daemon=True
    )
    child.start()
    theirs.close()
    try:
        if not ours.poll(_SECONDS):
            return _silent(path, f"It gave no answer within {_SECONDS:g} seconds.")
        answer = ours.recv()
    except (EOFError, OSError):
        child.join(_GRACE)
        return _silent(path, f"It ended the process that tried it ({_ending(child.exitcode)}).")
    finally:
        ours.close()
        child.join(_GRACE)
        if child.exitcode is None:
            child.kill()
            child.join()
        child.close()
    return _silent(path, answer) if isinstance(answer, str) else Trial(True, answer)


def _child(pipe: Connection, path: Path, environment: Mapping[str, str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    os.environ.update(environment)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)  # what drivers print is no error of ours
    answer: str | tuple[DeviceInfo, ...]
    try:
        before = {d.name for d in registered()}
        load_backend(path)
        answer = tuple(d for d in registered() if d.name not in before)
    except SlipstreamError as error:
        answer = error.message
    with contextlib.suppress(OSError):  # the parent went away
        pipe.send(answer)
    pipe.close()
    os._exit(0)  # a driver that dies while it is unloaded has answered all the same


def _ending(status: int | None) -> str:
    if status is not None and status < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-status).name
    return f"exit status {status}"


def _none(path: Path, reason: str) -> Trial:
    return Trial(False, (missing_gpu(backend_name(path), reason),))


def _silent(path: Path, reason: str) -> Trial:
    return replace(_none(path, reason), answered=False)
