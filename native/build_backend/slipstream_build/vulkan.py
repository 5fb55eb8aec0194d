"""The Vulkan backend as a library that is loaded on demand, for tests and whoever wants to try it.

DESIGN: a wheel built with `-DGGML_VULKAN=ON` links to libvulkan, and building all of it twice
only to test Vulkan takes ten minutes. So the backend alone is compiled, in a folder of its own,
against the same patched ggml; the wheel and the tools load it (`GGML_BACKEND_PATH`). Vulkan's
headers change faster than distributions do: the ones of Debian 13 are fetched by hash and used
whatever the system has; they are the same on every processor.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from . import patches, toolchain, tree, wheel
from .cache import cache_dir, lock
from .errors import BuildError, UnavailableError
from .upstream import NATIVE, load

LIBRARY = "libggml-vulkan.so"
HEADERS = "libvulkan-dev_1.4.309.0-1_amd64.deb"
HEADERS_URL = f"http://deb.debian.org/debian/pool/main/v/vulkan-loader/{HEADERS}"
HEADERS_SHA256 = "8d329d465e16168afff58b1bd0dd6db46aac2cc3f56054a481b25a04e90b345a"
ATTEMPTS = 3
KEPT = 2  # 30 MB each


def build() -> Path:
    """The library's path; compiled when nothing cached has the same inputs."""
    upstream = load()
    with lock(upstream.home / "lock"):
        key = _key()
        library = cache_dir() / "native" / "vulkan" / key / LIBRARY
        if library.is_file():
            library.parent.touch()
            return library
        started = time.monotonic()
        # CMake ties a build folder to its sources: both lie in the cache, whatever clone asks.
        built = upstream.home / f"build-vulkan-{wheel.short_key(toolchain.describe())}"
        patched = tree.prepare(upstream)
        defines = {
            "CMAKE_BUILD_TYPE": "Release",
            "GGML_SOURCE": patched / "vendor" / "llama.cpp" / "ggml",
            "Vulkan_INCLUDE_DIR": _headers(),
        }
        print(f"building the Vulkan backend in {built}", flush=True)
        args = [f"-D{name}={value}" for name, value in defines.items()]
        try:
            toolchain.cmake(
                "-S", patched / tree.LIBRARY / "vulkan", "-B", built, "-G", "Ninja", *args
            )
        except BuildError as exc:
            raise BuildError(
                "CMake cannot configure the Vulkan backend, see above. It needs (Debian's and "
                "Ubuntu's names): libvulkan-dev glslc spirv-headers"
            ) from exc
        toolchain.cmake("--build", built, "--target", "ggml-vulkan")
        part = library.parent.with_name(key + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        shutil.copy2(built / "bin" / LIBRARY, part / LIBRARY)
        part.replace(library.parent)
        wheel.prune(library.parent.parent, KEPT)
        print(f"built {LIBRARY} in {time.monotonic() - started:.0f} s", flush=True)
        return library


def _key() -> str:
    inputs = [
        NATIVE / "UPSTREAM.toml",
        Path(__file__),
        tree.vulkan_source()[1],
        *patches.series(NATIVE / "patches"),
        *(file for _, file in tree.engine_sources()),
    ]
    digest = hashlib.sha256(toolchain.describe().encode())
    digest.update(toolchain.output("glslc", "--version").encode())
    for file in inputs:
        digest.update(f"\0{file.name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _headers() -> Path:
    """The folder with vulkan/vulkan.hpp, unpacked once."""
    folder = cache_dir() / "downloads" / HEADERS.removesuffix(".deb")
    if not folder.is_dir():
        package = _fetch()
        part = folder.with_name(folder.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        for inside, content in _headers_of(package):
            file = part / inside
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        part.replace(folder)
    return folder


def _fetch() -> bytes:
    for attempt in range(1, ATTEMPTS + 1):
        print(f"fetching {HEADERS} (attempt {attempt} of {ATTEMPTS})", flush=True)
        try:
            with urllib.request.urlopen(HEADERS_URL, timeout=60) as reply:
                package: bytes = reply.read()
        except OSError as exc:
            if attempt == ATTEMPTS:
                raise UnavailableError(f"could not fetch {HEADERS_URL}: {exc}") from exc
            time.sleep(attempt * 3)
            continue
        got = hashlib.sha256(package).hexdigest()
        if got != HEADERS_SHA256:
            raise BuildError(f"{HEADERS}: sha256 is {got}, wanted {HEADERS_SHA256}; not used")
        return package
    raise AssertionError("unreachable")


def _headers_of(package: bytes) -> Iterator[tuple[PurePosixPath, bytes]]:
    """(path below usr/include, content) of each file there in a Debian package."""
    # An ar archive: a magic line, then members, each with a header of 60 bytes, padded to even.
    at = 8
    while at < len(package):
        name, size = package[at : at + 16].decode().strip(), int(package[at + 48 : at + 58])
        at += 60
        if name.startswith("data.tar"):
            with tarfile.open(fileobj=io.BytesIO(package[at : at + size])) as tar:
                for member in tar:
                    path = PurePosixPath(member.name)
                    content = tar.extractfile(member) if member.isfile() else None
                    if content is not None and path.is_relative_to("usr/include"):
                        yield path.relative_to("usr/include"), content.read()
        at += size + size % 2
