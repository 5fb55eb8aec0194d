"""The Vulkan backend.

Vulkan's headers change faster than distributions do: the ones of Debian 13 are fetched by hash and
used whatever the system has; they are the same on every processor. The shaders' compiler is the
system's only where it knows enough (`shaders.py`).
"""

from __future__ import annotations

from pathlib import Path

from . import backend, debian, shaders, toolchain, tree
from .cache import lock
from .debian import Package
from .upstream import Upstream, load, unpack

HEADERS = Package(
    "v/vulkan-loader/libvulkan-dev_1.4.309.0-1_amd64.deb",
    "8d329d465e16168afff58b1bd0dd6db46aac2cc3f56054a481b25a04e90b345a",
    "09c04436334bfe0e0223fecfc9b9d45c3899fa92",
)
FEATURE_TESTS = "ggml/src/ggml-vulkan/vulkan-shaders/feature-tests"
NEEDS = "(Debian's and Ubuntu's names): libvulkan-dev glslc spirv-headers"


def build() -> Path:
    """The library's path; compiled when nothing cached has the same inputs."""
    upstream = load()
    with lock(upstream.home / "lock"):
        tests = _feature_tests(upstream)
        glslc = shaders.compiler(tests)

        def defines() -> dict[str, object]:
            known = ", ".join(sorted(shaders.features(glslc, tests))) or "none"
            print(f"shader features by {glslc}: {known}", flush=True)
            return {"Vulkan_INCLUDE_DIR": _headers(), "Vulkan_GLSLC_EXECUTABLE": glslc}

        return backend.built("vulkan", upstream, _key(glslc), defines, NEEDS)


def _key(glslc: Path) -> str:
    own = (Path(__file__), Path(shaders.__file__))
    return backend.key(toolchain.output(str(glslc), "--version"), own)


def _headers() -> Path:
    """The folder with vulkan/vulkan.hpp, unpacked once."""
    return debian.unpacked(HEADERS.name, [HEADERS], "usr/include")


def _feature_tests(upstream: Upstream) -> Path:
    return unpack(upstream) / tree.LLAMA / FEATURE_TESTS
