"""All that decides the object files besides the sources: compiler, processor, environment."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from .errors import BuildError

# Environment variables that CMake lets change the outcome.
BUILD_ENV = (
    "CMAKE_ARGS CMAKE_GENERATOR CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CUDACXX CUDAFLAGS "
    "CUDAARCHS CUDAHOSTCXX MACOSX_DEPLOYMENT_TARGET VCToolsVersion VULKAN_SDK"
).split()


def describe(portable: bool = False) -> str:
    """The toolchain as text: what is built with another one gets another key."""
    parts = [f"{name}={os.environ.get(name, '')}" for name in BUILD_ENV]
    parts += [sysconfig.get_platform(), _compiler(), "any processor" if portable else _cpu()]
    if "CUDA" in os.environ.get("CMAKE_ARGS", ""):
        parts.append(output(os.environ.get("CUDACXX") or "nvcc", "--version"))
    return "\n".join(parts)


def drop_copy(built: Path) -> None:
    """Remove a build folder that is a copy, or was moved: what CMake wrote there builds the
    sources that the original was made of."""
    record = built / "CMakeCache.txt"
    if not record.is_file():
        return
    [line] = re.findall("^CMAKE_CACHEFILE_DIR:INTERNAL=(.*)$", record.read_text("utf-8"), re.M)
    made_in = Path(line)
    if not (made_in.exists() and made_in.samefile(built)):
        shutil.rmtree(built)


def cmake(*args: object) -> None:
    command = ["cmake", *map(str, args)]
    if subprocess.run(command, check=False).returncode != 0:
        raise BuildError(f"failed: {shlex.join(command)}")


def output(*command: str) -> str:
    try:
        return subprocess.run(command, text=True, capture_output=True, check=False).stdout
    except OSError:
        return ""


def _compiler() -> str:
    if sys.platform == "win32":
        return "msvc"  # its version is in VCToolsVersion where a developer prompt is open
    named = [os.environ[name] for name in ("CXX",) if os.environ.get(name)]
    for name in named or ["c++", "g++", "clang++"]:
        program = shlex.split(name)[0]
        if shutil.which(program):
            return output(program, "--version")
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
        return output("sysctl", "-n", "machdep.cpu.brand_string")
    return platform.processor()
