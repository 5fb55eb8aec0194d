"""The CUDA backend, for named architectures, with the libraries of CUDA that it links to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from . import backend, toolchain
from .cache import lock
from .errors import BuildError, UnavailableError
from .upstream import load

LINKED = re.compile(r"NEEDED.*?(lib(?:cudart|cublas|cublasLt)\.so[.\d]*)")  # the driver's stay out


def build(architectures: str) -> Path:
    """The library's path, what it links to of CUDA beside it.

    `architectures` is as CMake's CMAKE_CUDA_ARCHITECTURES. Raises UnavailableError without nvcc.
    """
    nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc")
    if nvcc is None:
        raise UnavailableError("there is no nvcc: install CUDA's toolkit")
    upstream = load()
    with lock(upstream.home / "lock"):
        made_with = f"{toolchain.output(nvcc, '--version')}\n{architectures}"
        kept_as = backend.key(made_with, [Path(__file__)])
        return backend.built(
            "cuda",
            upstream,
            kept_as,
            lambda: {"CMAKE_CUDA_ARCHITECTURES": architectures, "CMAKE_CUDA_COMPILER": nvcc},
            "CUDA's toolkit with cuBLAS",
            linked,
        )


def linked(library: Path) -> Iterator[Path]:
    """CUDA's libraries that this one links to, and those of them to each other.

    Raises BuildError where one is missing, and where the library has a C++ library of its own that
    it shows to others: Python with numpy crashes by it.
    """
    if " _ZSt4cout" in _told("nm", "-D", "--defined-only", library):
        raise BuildError(f"{library} exports a libstdc++ of its own: link it dynamically")
    cache = (library.parent.parent / "CMakeCache.txt").read_text("utf-8")
    found = re.search(r"^CUDA_cublas_LIBRARY:.*=(.+)$", cache, re.MULTILINE)
    folder = Path(found[1]).parent if found else library.parent
    seen, todo = set(), [library]
    while todo:
        for name in LINKED.findall(_told("readelf", "-d", todo.pop())):
            file = folder / name
            if name in seen:
                continue
            if not file.is_file():
                raise BuildError(f"{file} is missing, which the CUDA backend links to")
            seen.add(name)
            todo.append(file)
            yield file


def _told(*command: object) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{command[0]} failed:\n{done.stderr.strip()}")
    return done.stdout
