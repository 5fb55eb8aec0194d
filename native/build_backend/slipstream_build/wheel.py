"""Compile the tree incrementally; keep wheels under a hash of everything that went in."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from . import tree
from .cache import cache_dir, lock
from .errors import BuildError
from .upstream import NATIVE, Upstream, load, unpack

TOOLS = (
    "llama-server",
    "llama-bench",
    "llama-quantize",
    "llama-speculative-simple",
    "test-backend-ops",
    "test-llama-archs",
)
# One configuration serves the wheel and the tools, so they share every object file.
# What is switched on here is built only when asked for.
DEFINES = {
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "ON",
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
# Environment variables that CMake lets change the outcome.
BUILD_ENV = (
    "CMAKE_ARGS CMAKE_GENERATOR CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CUDACXX CUDAFLAGS "
    "CUDAARCHS CUDAHOSTCXX MACOSX_DEPLOYMENT_TARGET VCToolsVersion VULKAN_SDK"
).split()
KEPT_WHEELS = 6


def build() -> Path:
    """The wheel in the user cache; compiled when nothing cached has the same inputs."""
    upstream = load()
    with lock(upstream.home / "lock"):
        toolchain = _toolchain()
        folder = cache_dir() / "native" / "wheels" / _content_key(toolchain)
        for ready in folder.glob("*.whl"):
            folder.touch()
            return ready
        return _build(upstream, toolchain, folder)


def build_tools(base: bool = False) -> Path:
    """The folder with `TOOLS` and their libraries, from the patched or (`base`) plain tree."""
    upstream = load()
    with lock(upstream.home / "lock"):
        toolchain = _toolchain()
        build_dir = _build_dir(upstream, toolchain, base)
        if base:
            source = unpack(upstream) / "vendor" / "llama.cpp"
            _cmake("-S", source, "-B", build_dir, "-G", "Ninja", *_cmake_defines("base"))
        elif _built_key(build_dir) != (key := _content_key(toolchain)):
            _build(upstream, toolchain, cache_dir() / "native" / "wheels" / key)
        _cmake("--build", build_dir, "--config", "Release", "--target", *TOOLS)
        return build_dir / "bin"


def source() -> Path:
    """The unpacked, patched tree, up to date, nothing compiled."""
    upstream = load()
    with lock(upstream.home / "lock"):
        return tree.prepare(upstream)


def _build(upstream: Upstream, toolchain: str, folder: Path) -> Path:
    from scikit_build_core.build import build_wheel

    started = time.monotonic()
    source_dir = tree.prepare(upstream)
    build_dir = _build_dir(upstream, toolchain, base=False)
    state = "incremental" if build_dir.is_dir() else "first, several minutes"
    print(
        f"building llama-cpp-python {upstream.wheel_version} ({state}) in {build_dir}", flush=True
    )
    build_dir.mkdir(parents=True, exist_ok=True)
    _key_file(build_dir).unlink(missing_ok=True)
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    settings = {
        "build-dir": str(build_dir),
        "build.targets": "python-package",
        "build.verbose": "false",
        "install.components": "python-package",
        "cmake.args": ";".join(_cmake_defines(upstream.build)),
        "wheel.exclude": "llama_cpp/server/**",
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
    if (now := _content_key(toolchain)) != folder.name:
        print("the sources changed while they were compiled: once more", flush=True)
        shutil.rmtree(part)
        return _build(upstream, toolchain, folder.with_name(now))
    shutil.rmtree(folder, ignore_errors=True)
    part.replace(folder)
    _key_file(build_dir).write_text(folder.name)
    _prune(folder.parent)
    print(f"built {name} in {time.monotonic() - started:.0f} s", flush=True)
    return folder / name


def _cmake(*args: object) -> None:
    command = ["cmake", *map(str, args)]
    if subprocess.run(command, check=False).returncode != 0:
        raise BuildError(f"failed: {shlex.join(command)}")


def _cmake_defines(commit: str) -> list[str]:
    defines = DEFINES | {"LLAMA_BUILD_COMMIT": commit}
    args = [f"-D{name}={value}" for name, value in defines.items()]
    if commit == "base":  # scikit-build-core adds these by itself
        args += shlex.split(os.environ.get("CMAKE_ARGS", ""))
    return args


def _build_dir(upstream: Upstream, toolchain: str, base: bool) -> Path:
    key = hashlib.sha256(toolchain.encode()).hexdigest()[:12]
    return upstream.home / f"{'base' if base else 'build'}-{key}"


def _key_file(build_dir: Path) -> Path:
    return build_dir / "slipstream-content-key"


def _built_key(build_dir: Path) -> str | None:
    file = _key_file(build_dir)
    return file.read_text() if file.is_file() else None


def _content_key(toolchain: str) -> str:
    digest = hashlib.sha256(toolchain.encode())
    here = Path(__file__).parent
    inputs = [NATIVE / "UPSTREAM.toml", NATIVE / "pyproject.toml", *here.glob("*.py")]
    inputs += (NATIVE / "patches").glob("*.patch")
    inputs += (file for _, file in tree.library_sources())
    for file in sorted(inputs):
        content = file.read_bytes()
        digest.update(f"\0{file.relative_to(NATIVE).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _toolchain() -> str:
    """All that decides the object files besides the sources, as text."""
    parts = [f"{name}={os.environ.get(name, '')}" for name in BUILD_ENV]
    parts += [sysconfig.get_platform(), _compiler(), _cpu()]
    if "CUDA" in os.environ.get("CMAKE_ARGS", ""):
        parts.append(_output(os.environ.get("CUDACXX") or "nvcc", "--version"))
    return "\n".join(parts)


def _compiler() -> str:
    if sys.platform == "win32":
        return "msvc"  # its version is in VCToolsVersion where a developer prompt is open
    named = [os.environ[name] for name in ("CXX",) if os.environ.get(name)]
    for name in named or ["c++", "g++", "clang++"]:
        program = shlex.split(name)[0]
        if shutil.which(program):
            return _output(program, "--version")
    raise BuildError(
        "no C++ compiler found. Debian and Ubuntu: apt-get install g++. macOS: xcode-select "
        "--install. Or set CXX."
    )


def _cpu() -> str:
    """What `-march=native` sees: a wheel for one machine must not be used on a lesser one."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        wanted = ("flags", "Features", "vendor_id", "CPU part")
        lines = info.read_text().split("\n\n")[0].splitlines()
        return "\n".join(line for line in lines if line.startswith(wanted))
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string")
    return platform.processor()


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, text=True, capture_output=True, check=False).stdout
    except OSError:
        return ""


def _prune(wheels: Path) -> None:
    """Development makes many wheels: keep the few used last."""
    folders = sorted(wheels.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in folders[KEPT_WHEELS:]:
        shutil.rmtree(old, ignore_errors=True)
