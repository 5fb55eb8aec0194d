"""llama.cpp's programs and ours (native/tests, native/bench), kept like the wheel: by content."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import toolchain, tree, wheel
from .cache import cache_dir, lock
from .upstream import Upstream, load, unpack

PROGRAMS = (
    "llama-server",
    "llama-bench",
    "llama-quantize",
    "llama-speculative-simple",
    "test-backend-ops",
    "test-llama-archs",
)
OURS = (
    "bench-rewind",
    "bench-round",
    "test-crew",
    "test-cuda-graphs",
    "test-draft-vocabulary",
    "test-exact",
    "test-faults",
    "test-gdn-chunked",
    "test-kept-graphs",
    "test-kquants",
    "test-recurrent-rollback",
)
LIBRARIES = ("*.so", "*.so.*", "*.dylib", "*.dll")
KEPT = 4  # 20 MB each


def build(base: bool = False) -> Path:
    """A folder with the programs and their libraries, from the patched or (`base`) plain tree."""
    upstream = load()
    with lock(upstream.home / "lock"):
        chain = toolchain.describe()
        sources = [] if base else [file for _, file in tree.program_sources()]
        key = wheel.content_key(f"base\n{chain}" if base else chain, sources)
        folder = cache_dir() / "native" / "tools" / key
        if folder.is_dir():
            folder.touch()
            return folder
        build_dir = _plain_tree(upstream, chain) if base else wheel.built_tree(upstream, chain)
        targets = PROGRAMS if base else PROGRAMS + OURS
        toolchain.cmake("--build", build_dir, "--config", "Release", "--target", *targets)
        _collect(build_dir / "bin", targets, folder)
        wheel.prune(folder.parent, KEPT)
        return folder


def _plain_tree(upstream: Upstream, chain: str) -> Path:
    build_dir = wheel.build_dir(upstream, chain, base=True)
    toolchain.drop_copy(build_dir)
    source = unpack(upstream) / "vendor" / "llama.cpp"
    toolchain.cmake("-S", source, "-B", build_dir, "-G", "Ninja", *wheel.cmake_defines("base"))
    return build_dir


def _collect(built: Path, programs: tuple[str, ...], folder: Path) -> None:
    """Copy out of the build folder, where the next build overwrites them."""
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    names = [f"{program}{suffix}" for program in programs for suffix in ("", ".exe")]
    for file in {found for name in (*names, *LIBRARIES) for found in built.glob(name)}:
        shutil.copy2(file, part / file.name, follow_symlinks=False)
    part.replace(folder)
