"""A GPU backend alone, as a library that is loaded into the wheel's ggml.

DESIGN: a wheel built with `-DGGML_VULKAN=ON` links to libvulkan and does not load without it, and
building all of it once for each backend takes ten minutes each. So a backend is compiled alone, in
a folder of its own, against the same patched ggml; the app and the tools load it.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from . import patches, toolchain, tree, wheel
from .cache import cache_dir
from .errors import BuildError
from .upstream import NATIVE, Upstream

KEPT = 2  # of each backend; 30 MB and more


def key(made_with: str, more: Iterable[Path]) -> str:
    """A hash of all that a backend is built from: `made_with` names its own compiler."""
    inputs = [
        NATIVE / "UPSTREAM.toml",
        Path(__file__),
        tree.backend_source()[1],
        tree.release()[1],
        *more,
        *patches.series(NATIVE / "patches"),
        *(file for _, file in tree.engine_sources()),
    ]
    digest = hashlib.sha256(toolchain.describe().encode())
    digest.update(made_with.encode())
    for file in inputs:
        digest.update(f"\0{file.name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def built(
    name: str,
    upstream: Upstream,
    kept_as: str,
    defines: Callable[[], Mapping[str, object]],
    needs: str,
    beside: Callable[[Path], Iterable[Path]] = lambda library: (),
) -> Path:
    """The path of `libggml-NAME.so`; compiled unless it is kept under that key already.

    `beside` names files that belong next to it. The caller holds the lock. Raises BuildError, with
    what it `needs` where CMake cannot configure it.
    """
    library = cache_dir() / "native" / name / kept_as / f"libggml-{name}.so"
    if library.is_file():
        library.parent.touch()
        return library
    started = time.monotonic()
    # CMake ties a build folder to its sources: both lie in the cache, whatever clone asks.
    folder = upstream.home / f"build-backend-{name}-{wheel.short_key(toolchain.describe())}"
    toolchain.drop_copy(folder)
    patched = tree.prepare(upstream)
    print(f"building the {name} backend in {folder}", flush=True)
    known = {
        "BACKEND": name,
        "CMAKE_BUILD_TYPE": "Release",
        "GGML_SOURCE": patched / tree.LLAMA / "ggml",
        **wheel.release(upstream),
        **defines(),
    }
    args = [f"-D{option}={value}" for option, value in known.items()]
    source = patched / tree.LIBRARY / "backend"
    try:
        toolchain.cmake("-S", source, "-B", folder, "-G", "Ninja", *args)
    except BuildError as exc:
        raise BuildError(
            f"CMake cannot configure the {name} backend, see above. It needs {needs}"
        ) from exc
    toolchain.cmake("--build", folder, "--target", f"ggml-{name}")
    part = library.parent.with_name(kept_as + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    made = folder / "bin" / library.name
    for file in (made, *beside(made)):
        shutil.copy2(file, part / file.name)
    part.replace(library.parent)
    wheel.prune(library.parent.parent, KEPT)
    print(f"built {library.name} in {time.monotonic() - started:.0f} s", flush=True)
    return library
