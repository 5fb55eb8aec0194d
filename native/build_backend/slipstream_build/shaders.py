"""The compiler of the Vulkan shaders, glslc: the system's where it is new enough.

DESIGN: what a compiler does not know is left out of the backend silently, integer dot products and
cooperative matrices among it, which are most of a modern card's speed. Debian 12's knows none of
them. Debian 13's is fetched then, and run with that release's own C library, which the system's
need not be as new as.
"""

from __future__ import annotations

import platform
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from . import debian
from .debian import Package
from .errors import UnavailableError

# What a compiler must know to be taken: all that Debian 13's does.
WANTED: Final = frozenset({"integer_dot", "coopmat", "coopmat2"})
NAME: Final = "glslc_2025.2-1_amd64"
LIBRARIES: Final = "lib/x86_64-linux-gnu"
PACKAGES: Final = (
    Package(
        "s/shaderc/glslc_2025.2-1_amd64.deb",
        "e05374965709159303041b104d4a26022d6ac5eb8296450364d66ae864a20367",
        "c5785e4aa4f0bd0de780fff11ca12ac0fb27e30f",
    ),
    Package(
        "s/shaderc/libshaderc1_2025.2-1_amd64.deb",
        "2a67c8f784c65e1aa0d251819c020917405b490fbb543c6a73a52a631e476463",
        "6ddc9de0565ae774391887e60ea714e0a6156b6b",
    ),
    Package(
        "g/glibc/libc6_2.41-12+deb13u5_amd64.deb",
        "b59b0625cd1a791375d40dab23a4d5d3d0641e3d0a773501becdc3725b7f99cf",
        "2814165ecd61dee3d64ca4dedfbe47fc9da5e3d1",
    ),
    Package(
        "g/gcc-14/libstdc++6_14.2.0-19_amd64.deb",
        "ab1fa05837aa7a92aae748fd07a18a35f7d18bb4a71c4724fe2bbf0e32089de0",
        "88eff3277c2e74be3878264096b958aab6ed33dd",
    ),
    Package(
        "g/gcc-14/libgcc-s1_14.2.0-19_amd64.deb",
        "3c71917b490d1a17aed43196a2787a256ecf060526cdb20216a74bedc061b150",
        "bdc0b54ff7f971ecd56ae54aea604d2ab0e47aaf",
    ),
)


def compiler(tests: Path) -> Path:
    """The program that compiles the shaders; `tests` is the tree's folder of feature tests.

    Raises UnavailableError where there is none.
    """
    found = shutil.which("glslc")
    own = Path(found) if found else None
    if own and features(own, tests) >= WANTED:
        return own
    try:
        return _fetched()
    except UnavailableError as exc:
        if own is None:
            raise
        lacks = ", ".join(sorted(WANTED - features(own, tests)))
        print(f"Vulkan shaders are compiled without {lacks}: {exc}", flush=True)
        return own


def features(glslc: Path, tests: Path) -> frozenset[str]:
    """Which of the tree's tests it compiles, by name: what the backend will have of them."""
    compiled = set()
    for test in tests.glob("*.comp"):
        command = [glslc, "-o", "-", "-fshader-stage=compute", "--target-env=vulkan1.3", test]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            compiled.add(test.stem)
    return frozenset(compiled)


def _fetched() -> Path:
    if not (sys.platform.startswith("linux") and platform.machine() == "x86_64"):
        raise UnavailableError("this system's glslc is too old, and no other is known for it")
    folder = debian.unpacked(NAME, PACKAGES, "usr")
    program = folder / "glslc"
    loader = folder / LIBRARIES / "ld-linux-x86-64.so.2"
    parts = (loader, "--library-path", folder / LIBRARIES, folder / "bin" / "glslc")
    command = shlex.join(map(str, parts))
    text = f'#!/bin/sh\nexec {command} "$@"\n'
    # Written each time: the cache may have been moved.
    if not program.is_file() or program.read_text(encoding="utf-8") != text:
        program.write_text(text, encoding="utf-8")
    for file in (program, loader, folder / "bin" / "glslc"):
        file.chmod(0o755)
    return program
