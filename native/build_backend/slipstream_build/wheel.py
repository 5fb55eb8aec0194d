"""Compile the tree incrementally; keep wheels under a hash of everything that went in."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from . import toolchain, tree
from .cache import cache_dir, lock
from .errors import BuildError
from .upstream import NATIVE, Upstream, load

# One configuration serves the wheel and the tools, so they share every object file.
# What is switched on here is built only when asked for.
DEFINES = {
    "CMAKE_BUILD_TYPE": "Release",
    "GGML_NATIVE": "ON",  # else off where SOURCE_DATE_EPOCH is set, as for a wheel without times
    "BUILD_SHARED_LIBS": "ON",
    "CMAKE_BUILD_RPATH_USE_ORIGIN": "ON",  # programs find the libraries beside them, if moved too
    "LLAVA_BUILD": "OFF",
    "LLAMA_CURL": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_BUILD_COMMON": "ON",
    "LLAMA_BUILD_TOOLS": "ON",
    "LLAMA_BUILD_SERVER": "ON",
    "LLAMA_BUILD_EXAMPLES": "ON",
    "LLAMA_BUILD_TESTS": "ON",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
    "LLAMA_BUILD_NUMBER": "0",
}
# The CPU's backend once for each kind of processor, in libraries of which libslipstream loads one.
PORTABLE = {
    "GGML_NATIVE": "OFF",
    "GGML_BACKEND_DL": "ON",
    "GGML_CPU_ALL_VARIANTS": "ON",
}
KEPT_WHEELS = 6


def build(portable: bool = False) -> Path:
    """The wheel in the user cache; compiled when nothing cached has the same inputs.

    `portable`: for any processor of this kind of machine, not for the one at hand alone.
    """
    upstream = load()
    with lock(upstream.home / "lock"):
        chain = toolchain.describe(portable)
        folder = _wheels() / content_key(chain)
        for ready in folder.glob("*.whl"):
            folder.touch()
            return ready
        return _build(upstream, chain, folder, PORTABLE | release(upstream) if portable else {})


def built_tree(upstream: Upstream, chain: str) -> Path:
    """The build folder of the patched tree, up to date with what the wheel is made of.

    The caller holds the lock.
    """
    folder = build_dir(upstream, chain, base=False)
    toolchain.drop_copy(folder)
    if _built_key(folder) != (key := content_key(chain)):
        _build(upstream, chain, _wheels() / key)
    else:
        tree.prepare(upstream)  # tests and benches are no part of the wheel's key
    return folder


def source() -> Path:
    """The unpacked, patched tree, up to date, nothing compiled."""
    upstream = load()
    with lock(upstream.home / "lock"):
        return tree.prepare(upstream)


def _wheels() -> Path:
    return cache_dir() / "native" / "wheels"


def _build(
    upstream: Upstream, chain: str, folder: Path, more: Mapping[str, str] = MappingProxyType({})
) -> Path:
    from scikit_build_core.build import build_wheel

    started = time.monotonic()
    source_dir = tree.prepare(upstream)
    built = build_dir(upstream, chain, base=False)
    toolchain.drop_copy(built)
    state = "incremental" if built.is_dir() else "first, several minutes"
    print(f"building llama-cpp-python {upstream.wheel_version} ({state}) in {built}", flush=True)
    built.mkdir(parents=True, exist_ok=True)
    _key_file(built).unlink(missing_ok=True)
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    settings = {
        "build-dir": str(built),
        "build.targets": "python-package",
        "build.verbose": "false",
        "install.components": "python-package",
        "cmake.args": ";".join(cmake_defines(upstream.build, more)),
        "wheel.exclude": "llama_cpp/server/**",
        "wheel.reproducible": "true",  # no times and rights of whoever builds it
    }
    before = Path.cwd()
    os.chdir(source_dir)
    os.environ["GIT_CEILING_DIRECTORIES"] = str(upstream.home.parent)
    try:
        name = build_wheel(str(part), settings)
    except (SystemExit, subprocess.CalledProcessError) as exc:
        raise BuildError(f"the compiler or CMake failed, see above (tree: {source_dir})") from exc
    finally:
        os.chdir(before)
    if (now := content_key(chain)) != folder.name:
        print("the sources changed while they were compiled: once more", flush=True)
        shutil.rmtree(part)
        return _build(upstream, chain, folder.with_name(now), more)
    shutil.rmtree(folder, ignore_errors=True)
    part.replace(folder)
    _key_file(built).write_text(folder.name)
    prune(folder.parent, KEPT_WHEELS)
    print(f"built {name} in {time.monotonic() - started:.0f} s", flush=True)
    return folder / name


def cmake_defines(commit: str, more: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    defines = DEFINES | {"LLAMA_BUILD_COMMIT": commit} | more
    args = [f"-D{name}={value}" for name, value in defines.items()]
    if commit == "base":  # scikit-build-core adds these by itself
        args += shlex.split(os.environ.get("CMAKE_ARGS", ""))
    return args


def release(upstream: Upstream) -> dict[str, str]:
    """Defines of what is given to others, besides its own."""
    return {"CMAKE_PROJECT_TOP_LEVEL_INCLUDES": str(upstream.home / "source" / tree.release()[0])}


def build_dir(upstream: Upstream, chain: str, base: bool) -> Path:
    return upstream.home / f"{'base' if base else 'build'}-{short_key(chain)}"


def short_key(chain: str) -> str:
    return hashlib.sha256(chain.encode()).hexdigest()[:12]


def _key_file(folder: Path) -> Path:
    return folder / "slipstream-content-key"


def _built_key(folder: Path) -> str | None:
    file = _key_file(folder)
    return file.read_text() if file.is_file() else None


def content_key(chain: str, more: Iterable[Path] = ()) -> str:
    """A hash of the toolchain, of what the wheel is made of, and of `more` files under native/."""
    digest = hashlib.sha256(chain.encode())
    here = Path(__file__).parent
    inputs = [NATIVE / "UPSTREAM.toml", NATIVE / "pyproject.toml", *here.glob("*.py"), *more]
    inputs += (NATIVE / "patches").glob("*.patch")
    inputs += (file for _, file in (*tree.engine_sources(), *tree.library_sources()))
    for file in sorted(inputs):
        content = file.read_bytes()
        digest.update(f"\0{file.relative_to(NATIVE).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def prune(parent: Path, kept: int) -> None:
    """Development makes many of them: keep the few used last."""
    folders = sorted(parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in folders[kept:]:
        shutil.rmtree(old, ignore_errors=True)
