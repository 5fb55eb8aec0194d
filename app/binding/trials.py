"""How trials of backends ended, kept between runs: each costs a process and a driver's start."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Final

from app import kept, paths
from app.binding.addon import manifest_of
from app.binding.backends import Trial
from app.binding.library import ABI
from app.binding.records import DeviceInfo

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_DRIVERS: Final = ("/usr/share", "/usr/local/share", "/etc")  # with vulkan/icd.d below


def key(path: Path) -> str:
    """Changes with all that a trial depends on: the file, the start of the machine, its drivers,
    and the variables that choose among them."""
    seen: list[object] = [ABI, str(path)]
    # With all that an archive brought beside it: an installed library may be what it was, and what
    # it links to be damaged.
    for file in (path, *sorted(path.parent.glob("*.so.*")), manifest_of(path)):
        with contextlib.suppress(OSError):
            found = file.stat()
            seen += [file.name, found.st_size, found.st_mtime_ns]
    with contextlib.suppress(OSError):
        seen.append(_BOOT.read_text())
    for folder in _DRIVERS:
        for driver in sorted(Path(folder).glob("vulkan/icd.d/*.json")):
            with contextlib.suppress(OSError):
                seen.append((str(driver), driver.stat().st_mtime_ns))
    names = ("VK_", "GGML_VK_", "CUDA_VISIBLE")
    seen += sorted(item for item in os.environ.items() if item[0].startswith(names))
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:32]


def remembered(name: str) -> Trial | None:
    found = kept.find(_file(), name)
    with contextlib.suppress(KeyError, TypeError):
        return Trial(bool(found["usable"]), tuple(DeviceInfo(**d) for d in found["devices"]))
    return None


def remember(name: str, trial: Trial) -> None:
    devices = [asdict(d) for d in trial.devices]
    kept.keep(_file(), name, {"usable": trial.usable, "devices": devices})


def forget(name: str) -> None:
    kept.forget(_file(), name)


def _file() -> Path:
    return paths.cache() / "backends.json"
