"""In-tree PEP 517 backend: the pinned llama-cpp-python, our patches, our library, one wheel.

`python -m slipstream_build` (what `dev.py native` runs) and `pip install ./native` take the
same road and share the same caches:

    upstream.py  fetch, check, unpack the pinned source distribution
    patches.py   apply native/patches strictly, in order
    tree.py      bring the build's source tree to pristine + patches + our files, by content
    wheel.py     compile incrementally, pack, keep the wheel under a hash of all that went in
    tools.py     the same for llama.cpp's programs, our native tests and benches
    backend.py   the same for one GPU backend, a library that is loaded on demand
    vulkan.py    Vulkan's
    cuda.py      CUDA's
    shaders.py   the compiler of Vulkan's shaders
    debian.py    files out of packages of a newer Debian, by hash
    rebase.py    try the patches on another source distribution
    toolchain.py what else decides the outcome: compiler, processor, environment
    cache.py     where all that lives
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

__all__ = ["build_wheel", "get_requires_for_build_wheel"]


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Nothing beyond `[build-system] requires`."""
    return []


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build or reuse the wheel, copy it into `wheel_directory`, return its file name."""
    from . import wheel

    built = wheel.build()
    shutil.copyfile(built, Path(wheel_directory) / built.name)
    return built.name
