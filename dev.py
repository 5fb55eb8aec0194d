#!/usr/bin/env python3
"""One command each for setting up, running, testing and packaging Slipstream.

    python3 dev.py run      open the app
    python3 dev.py test     everything CI runs

Needs Python 3.11 to 3.14 and nothing else: it makes `.venv`, builds or reuses the native wheel,
installs the rest, and does again only what changed. `python3 dev.py COMMAND --help` says more.
"""

from __future__ import annotations

import sys

# An older one has to understand this file as far as 3.7 does, or it says nothing of use.
if not (3, 11) <= sys.version_info < (3, 15):
    sys.exit(
        f"Slipstream needs Python 3.11 to 3.14; this is {sys.version.split()[0]}. Where there is "
        "one beside it, name it: `python3.12 dev.py run`."
    )

import argparse
import ctypes
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from email import message_from_bytes
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parent
NATIVE = ROOT / "native"
VENV = ROOT / ".venv"
BACKEND = NATIVE / "build_backend"
LOCK = ROOT / "installers" / "lock"
USR = Path("/usr")
BIN = "Scripts" if sys.platform == "win32" else "bin"

sys.path.insert(0, str(BACKEND))
from slipstream_build.cache import cache_dir  # noqa: E402
from slipstream_build.errors import UNAVAILABLE  # noqa: E402

# What Qt's libraries and its xcb and offscreen plugins link to beyond a bare Debian or Ubuntu
# (ldd over PySide6), by the package that has it.
QT_LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}
# Without any font Qt draws boxes; these cover Latin, emoji and CJK, in tests and screenshots.
FONTS = {
    "NotoSans-Regular.ttf": "fonts-noto-core",
    "NotoColorEmoji.ttf": "fonts-noto-color-emoji",
    "NotoSansCJK-Regular.ttc": "fonts-noto-cjk",
}
# torch's builds for the CPU and for CUDA are different files of one version, and what the latter
# brings along is several gigabytes: pip chooses between them, so they are not in the lock.
UNLOCKED = re.compile(r"(torch|triton|cuda-.*|nvidia-.*)==")
# To build and run the Vulkan backend without a graphics card: by what they put under /usr.
VULKAN = {
    "include/vulkan/vulkan.h": "libvulkan-dev",
    "bin/glslc": "glslc",
    "include/spirv/unified1/spirv.hpp": "spirv-headers",
    "share/vulkan/icd.d/lvp_icd.*json": "mesa-vulkan-drivers",
}
# A desktop without a screen, for tests of the window as a user has it: by programs under /usr.
DESKTOP = {
    "bin/Xvfb": "xvfb",
    "bin/xdotool": "xdotool",
    "bin/dbus-daemon": "dbus-daemon",
    "libexec/at-spi-bus-launcher": "at-spi2-core",
    "bin/ibus-daemon": "ibus",
    "libexec/ibus-engine-hangul": "ibus-hangul",
    "bin/fcitx5": "fcitx5",
    "share/fcitx5/inputmethod/hangul.conf": "fcitx5-hangul",
}


# To make the installed app and Debian's package of it, by what they put under /usr.
PACKAGING = {
    "bin/strip": "binutils",
    "bin/dpkg-shlibdeps": "dpkg-dev",
    # what of it goes into the app: desktops lack it
    "lib/*/libxcb-cursor.so.0": "libxcb-cursor0",
}
# To try the package out in systems that have nothing else.
SMOKE = {
    "sbin/debootstrap": "debootstrap",
    "bin/desktop-file-validate": "desktop-file-utils",
    "bin/appstreamcli": "appstream",
    "bin/lintian": "lintian",
    "bin/weston": "weston",
    "bin/zstd": "zstd",
    "share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
}

# Of the Python that runs this, which need not be the system's `python3`.
VENV_PACKAGE = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
# What a package is wanted for, to find it by where packages have other names.
WANTED_OF = {
    name: sign
    for signs in (FONTS, VULKAN, DESKTOP, PACKAGING, SMOKE, QT_LIBRARIES)
    for sign, name in signs.items()
}
WANTED_OF[VENV_PACKAGE] = "ensurepip (a module of Python's own)"

# Versions of symbols in a library's table of strings: of glibc, libstdc++, libgomp.
SYMBOLS = re.compile(rb"\0(GLIBC|GLIBCXX|CXXABI|GOMP)_([\d.]+)(?=\0)")
# Code for Turing to Blackwell cards, and for what comes in the form that its driver compiles.
CUDA = "75-real;80-real;86-real;89-real;90-real;120-real;120-virtual"
CUDA_BIN = Path("/usr/local/cuda/bin")  # where the toolkit puts nvcc, which is in few a PATH
NVIDIA = Path("/proc/driver/nvidia/gpus")  # a folder for each card that the driver knows
# GPU backends that are libraries of their own beside the engine; the one that is built sooner
# first. Metal is a part of the wheel.
BACKENDS = ("vulkan", "cuda")
# What a user may have set for pip, and what breaks an environment of ours: to install elsewhere, to
# take for installed what lies in another folder, to want hashes of what has none. Where its files
# come from (index, proxy, certificates) stays the user's.
PIP_ENV = {"PIP_USER": "0", "PIP_REQUIRE_HASHES": "0", "PYTHONPATH": ""}
# What is named by exact version takes no other: pip refuses constraints beside hashes.
LOCKED_ENV = {"PIP_CONSTRAINT": ""}
# Commands that are a program of the tests, by hand.
PROGRAMS = {
    "exact": "tests.engine.exact_answers",
    "divergence": "tests.engine.divergence",
    "full-size": "tests.convert.full_size",
}
NOT_BUILT = "its build failed; `python3 dev.py backends` tries again and says why"


class Failed(Exception):
    """Stops the command; the text is all the user needs."""


class Unavailable(Failed):
    """What was asked for cannot be had on this machine; nothing went wrong."""


# --- small helpers ---------------------------------------------------------------------------


def say(text: str) -> None:
    """On stderr: stdout belongs to what a command gives, a path or the app's own output."""
    print(f"dev.py: {text}", file=sys.stderr, flush=True)


def run(command: Sequence[object], *, env: dict[str, str] | None = None) -> None:
    status = call(command, env=env, step=True)
    if status != 0:
        raise Failed(f"exit status {status}: {shlex.join(map(str, command))}")


def call(
    command: Sequence[object], *, env: dict[str, str] | None = None, step: bool = False
) -> int:
    """Run in the repository root with the terminal attached; Ctrl-C is the child's to handle, and
    ends us as well, once it has, where the command is but a `step` of what was asked for."""
    sys.stdout.flush()
    process = subprocess.Popen(
        [str(part) for part in command], cwd=ROOT, env={**os.environ, **(env or {})}
    )
    interrupted = False
    while True:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            interrupted = True
            continue
        if interrupted and step:
            raise KeyboardInterrupt
        return status


def python_of(venv: Path) -> Path:
    return venv / BIN / ("python.exe" if sys.platform == "win32" else "python")


def digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def this_python() -> str:
    """What an environment depends on of the Python that makes it: which compiled modules it
    takes, and where it lies. An update of it in its place changes neither."""
    return f"{sysconfig.get_config_var('EXT_SUFFIX')} {sys.base_prefix}"


def cached_env(kind: str, *parts: object) -> Path:
    """The folder in the cache of an environment that is made by these parts.

    Its place is one of them: what pip installs there as a program names its Python by the whole
    path, so that one in a cache that was moved or copied starts what is elsewhere, or nothing.
    """
    return cache_dir() / kind / digest(cache_dir(), this_python(), *parts)


def is_ready(environment: Path) -> bool:
    """Whether it was filled, and the Python that it was made of is still there."""
    return (environment / "ready").is_file() and python_of(environment).is_file()


def make_venv(folder: Path, *, anew: bool = False) -> bool:
    """Whether one had to be made: it is empty then, whatever was there."""
    works = python_of(folder).is_file() and call([python_of(folder), "-I", "-c", "import pip"]) == 0
    if works and not anew:
        return False
    say(f"making {folder}")
    # Not by the Python of an environment: it may be the one that is being replaced.
    base = getattr(sys, "_base_executable", None) or sys.executable
    run([base, "-m", "venv", "--clear", folder])
    return True


@contextmanager
def laid_aside(folder: Path) -> Iterator[None]:
    """While another is made in its place; where that fails (no network, say), it is back."""
    old = folder.with_name(f"{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    try:
        folder.replace(old)
    except OSError as exc:
        raise Failed(f"{folder} cannot be replaced ({exc}); close what uses it") from exc
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        old.replace(folder)
        say(f"{folder} is as it was")
        raise
    shutil.rmtree(old, ignore_errors=True)


def install_locked(venv: Path, name: str) -> None:
    """Exactly the versions of a lock file, each checked against its hashes."""
    pip(venv, "install", "--quiet", "--no-deps", "--require-hashes", "-r", LOCK / f"{name}.txt")


def read_toml(path: Path) -> dict[str, Any]:
    with path.open("rb") as handle:
        return tomllib.load(handle)


def pip(venv: Path, *args: object) -> None:
    command = [python_of(venv), "-m", "pip", "--disable-pip-version-check", *args]
    env = PIP_ENV | (LOCKED_ENV if "--no-deps" in args else {})
    for attempt in (1, 2, 3):
        if call(command, env=env, step=True) == 0:
            return
        if attempt < 3:
            say(f"pip failed, trying again ({attempt + 1} of 3)")
            time.sleep(5)
    raise Failed(f"pip failed three times: {shlex.join(map(str, command))}")


# --- what the system must have ---------------------------------------------------------------


def missing_packages(fonts: bool) -> list[str]:
    """Debian package names of what a Linux machine lacks; empty elsewhere."""
    if not sys.platform.startswith("linux"):
        return []
    lacks = []
    if not (os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")):
        lacks.append("g++")
    if not shutil.which("git"):
        lacks.append("git")
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        lacks.append(VENV_PACKAGE)
    lacks += [package for name, package in QT_LIBRARIES.items() if not _loads(name)]
    if fonts:
        have = {file.name for file in Path("/usr/share/fonts").rglob("Noto*")}
        lacks += [package for name, package in FONTS.items() if name not in have]
    return lacks


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def system_packages() -> None:
    """Install what is missing where that is allowed, otherwise name it in one command."""
    # Fonts change how text looks, not whether the app works: nobody is stopped for them.
    install_packages(missing_packages(fonts=may_install()))


def vulkan_signs(drivers: bool) -> dict[str, str]:
    return {s: n for s, n in VULKAN.items() if drivers or not n.endswith("-drivers")}


def vulkan_packages(*, drivers: bool = True) -> None:
    """The same for the Vulkan backend; `drivers` adds Mesa's software renderer."""
    if not sys.platform.startswith("linux"):
        raise Unavailable("the Vulkan backend as a library of its own is built on Linux only")
    optional_packages(vulkan_signs(drivers))


def desktop_packages() -> None:
    """The same for an X server without a screen, and what people have on a desktop."""
    if not sys.platform.startswith("linux"):
        raise Unavailable("they need an X server")
    optional_packages(DESKTOP)


def optional_packages(signs: dict[str, str]) -> None:
    try:
        install_packages(not_there(signs))
    except Failed as exc:
        raise Unavailable(str(exc)) from exc


def not_there(signs: dict[str, str]) -> list[str]:
    return [name for sign, name in signs.items() if not any(USR.glob(sign))]


# --- what the machine is ---------------------------------------------------------------------


def nvidia_card() -> bool:
    """Whether there is one that its driver knows; under Windows (WSL) that is not in /proc."""
    return any(NVIDIA.glob("*")) or (Path("/dev/dxg").exists() and _loads("libcuda.so.1"))


def nvidia_architectures() -> str:
    """Of the NVIDIA cards here, as CMake names them; empty where they cannot be asked."""
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, check=False, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = {(int(a), int(b)) for a, b in re.findall(r"^(\d+)\.(\d+)$", told, re.MULTILINE)}
    return ";".join(f"{major}{minor}-real" for major, minor in sorted(found))


def nvcc() -> str | None:
    path = os.pathsep.join((os.environ.get("PATH", ""), str(CUDA_BIN)))
    return os.environ.get("CUDACXX") or shutil.which("nvcc", path=path)


def vulkan_driver() -> bool:
    """Whether a graphics driver says that it offers Vulkan."""
    if os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES"):
        return True
    folders = (USR / "share", USR / "local/share", Path("/etc"))
    return any(any(folder.glob("vulkan/icd.d/*.json")) for folder in folders)


def no_use_for(backend: str) -> str:
    """Why this machine cannot use a backend, by what can be seen of it; empty where it can."""
    if not sys.platform.startswith("linux"):
        return "as a library of its own it is built on Linux only"
    if backend == "vulkan" and not (_loads("libvulkan.so.1") or vulkan_driver()):
        return "there is neither a Vulkan loader (libvulkan.so.1) nor a driver"
    if backend == "cuda" and not nvidia_card():
        return "there is no NVIDIA card with its driver"
    if backend == "cuda" and not nvcc():
        return (
            "there is an NVIDIA card, and no nvcc: install CUDA's toolkit, or get the backend as "
            "an archive (`slipstream devices --add FILE`)"
        )
    return ""


def why_not(backend: str) -> str:
    """Why this machine gets no such backend: it has no use for it, or lacks what builds it and
    nobody may install that. Empty where it can be tried."""
    reason = no_use_for(backend)
    if not reason and backend == "vulkan" and not may_install():
        lacks = not_there(vulkan_signs(drivers=False))
        reason = lacking(lacks) if lacks else ""
    return reason


def reasons_against(known: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """For each backend why this machine gets none, or nothing; told where it is not `known`."""
    if sys.platform == "darwin" and not known:
        say("Metal is a part of the engine")
    reasons = {}
    for name in BACKENDS:
        before = known.get(name)
        settled = before in ("", NOT_BUILT)  # what can be seen says no more of it
        reasons[name] = reason = before if settled else why_not(name)
        if reason and (reason != before or reason == NOT_BUILT):
            say(f"no {name} backend: {reason}")
    return reasons


def may_install() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0 and bool(shutil.which("apt-get"))


def install_command(lacks: Sequence[str]) -> list[str]:
    return ["apt-get", "install", "-y", "--no-install-recommends", *lacks]


def lacking(lacks: Sequence[str]) -> str:
    """What to tell of Debian's packages that are not there and that we may not install."""
    if not shutil.which("apt-get"):
        wanted = ", ".join(WANTED_OF.get(name, name) for name in lacks)
        return f"this system lacks: {wanted}. Install the packages that bring them."
    return (
        f"this system lacks: {' '.join(lacks)} (Debian's and Ubuntu's names). Run:\n"
        f"  sudo apt-get update && sudo {shlex.join(install_command(lacks))}"
    )


def install_packages(lacks: list[str]) -> None:
    if not lacks:
        return
    if not may_install():
        raise Failed(lacking(lacks))
    install = install_command(lacks)
    say(f"installing system packages: {' '.join(lacks)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    call(["apt-get", "update", "-qq"], env=quiet, step=True)
    run([*install[:1], "-qq", *install[1:]], env=quiet)


# --- native ----------------------------------------------------------------------------------


def native(*options: str) -> Path:
    """Run the build backend in its own environment; return the path it prints last."""
    locked = (LOCK / "native.txt").read_text(encoding="utf-8")
    env_dir = cached_env("build-env", locked)
    if not is_ready(env_dir):
        make_venv(env_dir)
        install_locked(env_dir, "native")
        (env_dir / "ready").touch()
    command = [python_of(env_dir), "-m", "slipstream_build", *options]
    env = {**os.environ, **PIP_ENV, **LOCKED_ENV, "PYTHONPATH": str(BACKEND)}
    env["PATH"] = os.pathsep.join((str(env_dir / BIN), env["PATH"], str(CUDA_BIN)))
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, encoding="utf-8", errors="replace"
    ) as process:
        assert process.stdout is not None
        last = ""
        for line in process.stdout:  # one line late: the last one is the answer
            if last:
                print(last, file=sys.stderr, flush=True)
            last = line.rstrip("\n")
    if process.returncode != 0:
        print(last, file=sys.stderr, flush=True)
        if process.returncode == UNAVAILABLE:
            raise Unavailable("not on this machine, see above")
        raise Failed("the native build failed, see above")
    return Path(last)


# --- commands --------------------------------------------------------------------------------


def installed() -> dict[str, Any]:
    """What set-up stamped as done in `.venv`; nothing, where the stamp cannot be read."""
    try:
        have = json.loads((VENV / "slipstream.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return have if isinstance(have, dict) else {}


def note_installed(have: dict[str, Any]) -> None:
    part = VENV / "slipstream.json.part"
    part.write_text(json.dumps(have), encoding="utf-8")
    part.replace(VENV / "slipstream.json")


def engine_is(wheel: Path) -> bool:
    """Whether the engine in `.venv` is that of this wheel, byte for byte."""
    found = [lib.parents[1] for lib in VENV.glob("**/llama_cpp/lib")]
    if len(found) != 1:
        return False
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            file = found[0] / name
            # what is beside it, `.dist-info`, pip writes anew
            if not name.startswith("llama_cpp/") or name.endswith("/"):
                continue
            if not file.is_file() or file.read_bytes() != archive.read(name):
                return False
    return True


def setup(extras: bool, *, repair: bool = False) -> None:
    """`.venv` with the native wheel and the app, editable; `extras` adds the test tools.

    `repair` looks whether the engine is still what was installed: the app sends here whoever has
    one that is missing, damaged or somebody else's.
    """
    started = time.monotonic()
    system_packages()
    have = installed()
    locks = [(LOCK / f"{name}.txt").read_text(encoding="utf-8") for name in ("app", "test")]
    project = read_toml(ROOT / "pyproject.toml")["project"]
    tools = project["optional-dependencies"]["test"]
    unlocked = [tool for tool in tools if UNLOCKED.match(tool)]
    wanted = {
        # the place, because programs and the editable app in a copy name that of the original
        "locked": digest(ROOT, this_python(), *unlocked, *locks),
        "app": digest((ROOT / "pyproject.toml").read_text(encoding="utf-8")),
    }
    # Anew rather than over the old one: nothing may be there that the lock does not name.
    anew = bool(have) and have.get("locked") != wanted["locked"]
    with laid_aside(VENV) if anew and not VENV.is_symlink() else nullcontext():
        if make_venv(VENV, anew=anew):
            have = {}
        # What is done is stamped at once: an interrupted set-up goes on where it was.
        if "locked" not in have or (extras and not have["extras"]):
            say("installing what the app needs" + (" and the test tools" if extras else ""))
            install_locked(VENV, "test" if extras else "app")
            if extras:
                pip(VENV, "install", "--quiet", *unlocked)
            have |= {"locked": wanted["locked"], "extras": extras}
            note_installed(have)
    wheel = native()
    # Its folder is named after a hash of all that went into it; the version alone does not
    # tell two development wheels apart.
    built = f"{wheel.parent.name}/{wheel.name}"
    if have.get("native") != built or (repair and not engine_is(wheel)):
        say(f"installing {wheel.name}")
        for name in ("native", "backends"):  # these belong to the engine that goes
            have.pop(name, None)
        note_installed(have)  # at once too: an interrupted pip may leave none
        for folder in VENV.glob("**/llama_cpp/lib/backends"):
            shutil.rmtree(folder)
        pip(VENV, "install", "--quiet", "--force-reinstall", "--no-deps", wheel)
        have |= {"native": built}
        note_installed(have)
    if have.get("app") != wanted["app"]:
        say("installing the app")
        pip(VENV, "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", ROOT)
        have |= {"app": wanted["app"]}
        note_installed(have)
    say(f"ready in {time.monotonic() - started:.0f} s")


def backend_names(text: str) -> list[str]:
    """Of an option: names with commas between them, or "none"."""
    names = [] if text == "none" else text.split(",")
    unknown = set(names) - set(BACKENDS)
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no backend {', '.join(sorted(unknown))}")
    return names


def backends(chosen: Sequence[str] | None) -> int:
    """GPU backends into the installed engine: those that are named, whatever is seen of this
    machine, else those that it can use. Status 1 where one that is named cannot be had.

    Each arrives as a whole file, also while the app runs: it takes what is new there. The stamp
    has for each why it is not there; nothing for one that is, or that somebody left out: who
    names some has the last word, about those that are not named as well.
    """
    reasons = reasons_against() if chosen is None else dict.fromkeys(BACKENDS, "")
    wanted = [name for name in BACKENDS if not reasons[name]] if chosen is None else chosen
    lacks = [name for name in wanted if not install_backend(name)]
    reasons |= {name: why_not(name) or NOT_BUILT for name in lacks}
    note_installed(installed() | {"backends": reasons})
    return 1 if chosen is not None and lacks else 0


def install_backend(name: str) -> bool:
    """Builds it, and puts it beside the installed engine; says why not where it cannot be had."""
    try:
        if name == "vulkan":
            vulkan_packages(drivers=False)
            library = native("--vulkan")
        else:
            library = native("--cuda", nvidia_architectures() or CUDA)
    except Failed as exc:
        say(f"no {name} backend: {exc}")
        return False
    (lib,) = VENV.glob("**/llama_cpp/lib")
    lay_backend(library, lib)
    say(f"installed the {name} backend")
    return True


def lay_backend(library: Path, lib: Path) -> None:
    """A backend with what lies beside it, into the folder of an engine's libraries."""
    folder = lib / "backends"
    folder.mkdir(exist_ok=True)
    (folder / f"{library.stem}.json").unlink(missing_ok=True)  # of an archive that was here
    # The library last: whoever looks meanwhile finds it only with all that it needs.
    for file in sorted(library.parent.iterdir(), key=lambda file: file == library):
        part = folder / f"{file.name}.part"
        shutil.copyfile(file, part)
        part.replace(folder / file.name)


def backends_beside() -> None:
    """The same while the app is open already, of what this machine has become able to use since:
    they may take minutes to compile. Why not is told once, and again when it is another reason."""
    known = installed().get("backends")
    if not isinstance(known, dict):  # none, or a list of an older dev.py
        known = {}
    reasons = reasons_against(known)
    missing = [name for name in BACKENDS if not reasons[name] and known.get(name) != ""]
    if not missing:
        if reasons != known:
            note_installed(installed() | {"backends": reasons})
        return
    log = cache_dir() / "backends.log"
    say(f"building beside the app, which takes it when it is ready: {', '.join(missing)} ({log})")
    with log.open("w", encoding="utf-8") as file:
        politely = ["nice"] if shutil.which("nice") else []
        subprocess.Popen(
            [*politely, sys.executable, ROOT / "dev.py", "backends"],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,  # it may outlive the app
        )


def lock() -> int:
    """Renew the lock files: the newest versions within the bounds, for every system."""
    app = read_toml(ROOT / "pyproject.toml")
    needs = {
        "native": read_toml(NATIVE / "pyproject.toml")["build-system"]["requires"],
        "app": [
            *app["project"]["dependencies"],
            *app["build-system"]["requires"],  # of the editable install
            *wheel_requires(native()),
        ],
    }
    for name in ("test", "package"):
        needs[name] = [*needs["app"], *app["project"]["optional-dependencies"][name]]
    environment = cached_env("lock-env")
    make_venv(environment)
    pip(environment, "install", "--quiet", "--upgrade", "uv")
    compile_ = [environment / BIN / "uv", "pip", "compile", "--quiet", "--universal"]
    compile_ += ["--python-version", "3.11", "--generate-hashes", "--no-annotate", "--no-header"]
    LOCK.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "test.txt")  # the app's versions are those it is tested with
        for name in ("test", "app", "package", "native"):
            source = Path(folder, f"{name}.in")
            source.write_text("\n".join(needs[name]), encoding="utf-8")
            same = ["--constraint", whole] if name in ("app", "package") else []
            run([*compile_, *same, source, "--output-file", Path(folder, f"{name}.txt")])
            text = Path(folder, f"{name}.txt").read_text(encoding="utf-8")
            kept = "".join(entry for entry in lock_entries(text) if not UNLOCKED.match(entry))
            head = "# Made by `python3 dev.py lock`: the versions that set-up installs.\n"
            (LOCK / f"{name}.txt").write_text(head + kept, encoding="utf-8")
            say(f"wrote {LOCK / name}.txt")
    return 0


def lock_entries(text: str) -> Iterator[str]:
    """Each requirement of a lock file, with its lines of hashes."""
    for entry in re.split(r"^(?=\w)", text, flags=re.MULTILINE):
        if entry and not entry.startswith("#"):
            yield entry


def wheel_requires(wheel: Path) -> list[str]:
    """What a wheel itself depends on, extras left out."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        listed = message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])
    return [requirement for requirement in listed if "extra ==" not in requirement]


def tool(name: str, *options: str) -> list[object]:
    """As a module where it is one; import-linter has none that can be run."""
    if name == "lint-imports":
        return [VENV / BIN / name, *options]
    return [python_of(VENV), "-m", name, *options]


def check() -> int:
    """Lint, formatting, types, import contracts; all of them, whatever the first one says."""
    failed = []
    for command in (
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
        ["lint-imports", "--no-logo"],
    ):
        if call(tool(*command)) != 0:
            failed.append(shlex.join(command))
    for command in failed:
        say(f"failed: {command}")
    return 1 if failed else 0


def test(pytest_args: list[str]) -> int:
    setup(extras=True)
    if not pytest_args:
        build_for_tests()  # up front, where it can be watched; a selection builds what it needs
    checked = check()
    # Tests draw into memory unless somebody wants to watch.
    env = {"QT_QPA_PLATFORM": os.environ.get("QT_QPA_PLATFORM", "offscreen")}
    if checked != 0:
        say("static checks failed (above); running the tests all the same")
    tested = call([python_of(VENV), "-X", "faulthandler", "-m", "pytest", *pytest_args], env=env)
    return tested or checked


def build_for_tests() -> None:
    started = time.monotonic()
    native("--tools")
    try:
        vulkan_packages()
        native("--vulkan")
    except Unavailable as exc:
        say(f"tests of the Vulkan backend cannot run: {exc}")
    try:
        desktop_packages()
    except Unavailable as exc:
        say(f"tests on a desktop cannot run: {exc}")
    say(f"programs for the tests ready in {time.monotonic() - started:.0f} s")


def bench_native(arguments: list[str]) -> int:
    """Base against ours; built where no folder is given, the base only if it is measured."""
    sides = {"--ours": ["--tools"]}
    if "--pair" in arguments:
        sides["--base"] = ["--tools", "--base"]
    given = {argument.split("=")[0] for argument in arguments}
    for side, options in sides.items():
        if not given & {side, "-h", "--help"}:
            system_packages()
            arguments = [side, str(native(*options)), *arguments]
    return call([sys.executable, NATIVE / "bench", *arguments])


def server_tests(arguments: list[str]) -> int:
    """llama.cpp's own suite for llama-server, on both trees; its tools in an environment apart."""
    setup(extras=False)
    source = native("--source") / "vendor" / "llama.cpp"
    listed = (source / "tools" / "server" / "tests" / "requirements.txt").read_text("utf-8")
    # the first only downloads models, the second would run tests in parallel on the same port
    unused = ("wget", "pytest-xdist")
    requires = [line for line in listed.split() if not line.startswith(unused)]
    environment = cached_env("server-tests", listed)
    if not is_ready(environment):
        make_venv(environment)
        pip(environment, "install", "--quiet", "pytest-timeout", *requires)
        (environment / "ready").touch()
    with tempfile.TemporaryDirectory() as pair:
        demo = ROOT / "assets" / "demo"
        convert = ["--target", demo / "target", "--draft", demo / "draft", "--out", pair]
        run([python_of(VENV), "-m", "app", "convert", *convert, "--type", "f32"])
        files = {name: next(Path(pair).glob(f"{name}*.gguf")) for name in ("target", "draft")}
        sides = ["--ours", native("--tools"), "--base", native("--tools", "--base")]
        given = ["--source", source, "--target", files["target"], "--draft", files["draft"]]
        suite = NATIVE / "tests" / "server_suite.py"
        return call([python_of(environment), suite, *sides, *given, *arguments])


def package(
    dist: Path,
    cuda: str | None,
    engine: Path | None,
    wheels: bool,
    options: list[str],
    vulkan: bool = True,
) -> int:
    """Wheels of the app and of the engine for any processor (or `engine`, a wheel of it) into
    `dist`, and with them, unless only `wheels` are wanted, the installed app, which has Vulkan's
    backend where `vulkan`. `cuda`: also its backend, for these architectures, as an archive that
    `slipstream devices --add` installs."""
    system_packages()
    if not wheels:  # what is lacking is told before the long build, not behind it
        commit_time()
        packaging_packages(vulkan)
    environment = package_env()
    dist.mkdir(parents=True, exist_ok=True)
    built = engine.resolve() if engine else native("--portable")
    if built.parent != dist:
        shutil.copyfile(built, dist / built.name)
    make = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", dist, ROOT)
    pip(environment, *make)
    say(f"wheels in {dist}; {runs_on(built)}")
    if cuda is not None:
        setup(extras=False)
        library = native("--cuda", cuda)
        say(f"archive: {backend_archive(library, cuda.split(';'), dist)}")
    if engine is None:  # one that is given was compiled who knows where
        options = [*options, "--compiled-in", str(cache_dir())]
    return 0 if wheels else package_app(environment, dist / built.name, dist, options, vulkan)


def package_env() -> Path:
    """An environment with what the installed app is made of and by, and nothing else."""
    locked = (LOCK / "package.txt").read_text(encoding="utf-8")
    environment = cached_env("package-env", locked)
    if not is_ready(environment):
        make_venv(environment)
        install_locked(environment, "package")
        (environment / "ready").touch()
    return environment


def packaging_packages(vulkan: bool) -> None:
    """What the system must have to make the installed app, with Vulkan's backend or without."""
    if not sys.platform.startswith("linux"):
        return
    optional_packages(PACKAGING)
    if vulkan:
        with vulkan_is_wanted():
            vulkan_packages(drivers=False)


@contextmanager
def vulkan_is_wanted() -> Iterator[None]:
    try:
        yield
    except Failed as exc:
        raise Failed(f"{exc}\nIs the app to be made without Vulkan's backend: --no-vulkan") from exc


def package_app(
    environment: Path, engine: Path, dist: Path, options: list[str], vulkan: bool
) -> int:
    """The app with its engine as one folder, which needs no Python: packed, with figures of it.

    Raises Failed where `vulkan` is wanted and its backend cannot be built on this Linux.
    """
    for folder in environment.glob("**/llama_cpp/lib"):
        shutil.rmtree(folder)  # a backend there belongs to the engine that goes
    (app,) = dist.glob(f"slipstream-{project_version()}-*.whl")
    pip(environment, "install", "--quiet", "--force-reinstall", "--no-deps", engine, app)
    (lib,) = environment.glob("**/llama_cpp/lib")
    if vulkan and sys.platform.startswith("linux"):  # elsewhere it is no library of its own
        with vulkan_is_wanted():
            library = native("--vulkan")
        lay_backend(library, lib)
    made = ["-P", "-m", "slipstream_package", "--dist", dist, "--epoch", str(commit_time())]
    made += ["--work", cache_dir() / "package", *options]
    env = {"PYTHONPATH": str(ROOT / "installers"), "QT_QPA_PLATFORM": "offscreen"}
    return call([python_of(environment), *made], env=env)


def commit_time() -> int:
    """Seconds; what is built of one commit tells no other time. Raises Failed without one."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    command = ["git", "log", "-1", "--format=%ct"]
    try:
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as exc:
        raise Failed(
            "git does not tell when this was committed; give the time that its files are to have, "
            "in seconds, as SOURCE_DATE_EPOCH"
        ) from exc
    return int(told)


def project_version() -> str:
    version: str = read_toml(ROOT / "pyproject.toml")["project"]["version"]
    return version


def smoke(arguments: list[str]) -> int:
    """The package of dist/ in bare systems; arguments are of installers/smoke.py."""
    if not sys.platform.startswith("linux"):
        raise Unavailable("it needs Linux, and to be root")
    desktop_packages()
    optional_packages(SMOKE)
    environment = package_env()
    command = [python_of(environment), "-m", "installers.smoke", "--cache", cache_dir() / "smoke"]
    return call([*command, *arguments])


def reproduce() -> int:
    """The package of dist/ once more, of the same commit and from nothing: in another folder, with
    a cache of its own, in another time zone. Status 1 where a file differs, which is named."""
    state = ["git", "status", "--porcelain"]
    if subprocess.run(state, cwd=ROOT, capture_output=True, text=True, check=True).stdout:
        raise Failed("there are changes that are not committed: a second build would lack them")
    with tempfile.TemporaryDirectory(prefix="slipstream again ") as folder:
        copy = Path(folder, "slipstream")
        run(["git", "clone", "--quiet", ROOT, copy])
        own = {"SLIPSTREAM_CACHE": f"{folder}/cache", "CCACHE_DISABLE": "1", "TZ": "Asia/Kolkata"}
        run([sys.executable, copy / "dev.py", "package"], env=own)
        compare = [python_of(package_env()), "-m", "installers.slipstream_package.compare"]
        return call([*compare, ROOT / "dist", copy / "dist"])


def runs_on(wheel: Path) -> str:
    """What a machine must have for the engine of this wheel: the newest symbols it asks for.

    Raises Failed where a library brings a libstdc++ that others see: Python crashes by it.
    """
    newest: dict[str, tuple[int, ...]] = {}
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        for name in archive.namelist():
            if name.endswith(".so"):
                if " _ZSt9terminatev" in _exports(Path(archive.extract(name, folder))):
                    raise Failed(
                        f"{name} has a libstdc++ of its own, and shows it: see that the compiler "
                        "links it dynamically (LDFLAGS)"
                    )
                for kind, version in SYMBOLS.findall(archive.read(name)):
                    found = tuple(map(int, version.split(b".")))
                    newest[kind.decode()] = max(found, newest.get(kind.decode(), (0,)))
    told = ", ".join(f"{kind}_{'.'.join(map(str, v))}" for kind, v in sorted(newest.items()))
    return f"the engine runs where libc, libstdc++ and libgomp have {told or 'anything'}"


def _exports(library: Path) -> str:
    command = ["nm", "-D", "--defined-only", str(library)]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except OSError as exc:
        raise Failed("there is no `nm`: apt-get install binutils") from exc
    except subprocess.CalledProcessError as exc:
        raise Failed(f"`nm` cannot read {library.name}: {exc.stderr.strip()}") from exc


def backend_archive(library: Path, architectures: Sequence[str], dist: Path) -> Path:
    """A backend, what lies beside it and a manifest of both, for `app/binding/addon.py`."""
    ask = "from app.binding.addon import engine; print(engine())"
    command = [python_of(VENV), "-c", ask]
    engine = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = sorted(file for file in library.parent.iterdir() if file.suffix != ".json")
    hashes = {}
    for file in files:
        with file.open("rb") as content:
            hashes[file.name] = hashlib.file_digest(content, "sha256").hexdigest()
    manifest = {
        "library": library.name,
        "engine": engine.strip(),
        "architectures": list(architectures),
        "files": hashes,
    }
    made = dist / f"slipstream-{library.stem.removeprefix('libggml-')}.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{library.stem}.json", json.dumps(manifest, indent=1))
        for file in files:
            archive.write(file, file.name)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text)

    make = add("setup", "make .venv with the native wheel, the app (editable) and the test tools")
    for command in (
        make,
        add("backends", "build the GPU backends that this machine can use, into the .venv"),
    ):
        command.add_argument(
            "--backends",
            type=backend_names,
            metavar="NAMES",
            help=f"these of {', '.join(BACKENDS)}, whatever is seen of the machine; none for the "
            "CPU alone",
        )
    add("run", "open the app; arguments go to `slipstream` (run ask Hello)")
    add("test", "static checks, then all tests; arguments go to pytest (test -k convert)")
    add("check", "only the static checks: ruff, mypy, import contracts")
    add("fix", "format and repair what ruff can")
    build = add("native", "build or reuse the native wheel and print its path")
    build.add_argument("--tools", action="store_true", help="llama.cpp's programs; prints a folder")
    build.add_argument("--base", action="store_true", help="with --tools: from the unpatched tree")
    build.add_argument("--portable", action="store_true", help="a wheel for any processor")
    build.add_argument("--vulkan", action="store_true", help="the Vulkan backend; prints a library")
    build.add_argument(
        "--cuda",
        nargs="?",
        const=CUDA,
        metavar="ARCHITECTURES",
        help="the CUDA backend; prints a library",
    )
    build.add_argument("--source", action="store_true", help="only the patched tree; prints it")
    build.add_argument(
        "--rebase",
        metavar="VERSION-or-FILE",
        help="try the patches on another upstream source distribution; names the hunks to mend",
    )
    add("lock", "renew the lock files in installers/lock: the newest versions within the bounds")
    packed = add(
        "package",
        "into dist/: wheels of the app and of the engine for any processor, and the app that is "
        "installed without Python, as a .deb and a tar.zst; see installers/README.md",
    )
    packed.add_argument("--quick", action="store_true", help="hardly packed, to try it out")
    packed.add_argument(
        "--dist", type=Path, metavar="FOLDER", default=ROOT / "dist", help="in place of dist/"
    )
    packed.add_argument("--wheels", action="store_true", help="only the wheels")
    packed.add_argument(
        "--no-vulkan", action="store_true", help="the app without the Vulkan backend"
    )
    packed.add_argument(
        "--engine", type=Path, metavar="WHEEL", help="the engine, in place of one built now"
    )
    packed.add_argument(
        "--homepage",
        default="https://slipstream.invalid",
        help="the project's page, for the package's metadata (%(default)s)",
    )
    packed.add_argument(
        "--cuda",
        nargs="?",
        const=CUDA,
        metavar="ARCHITECTURES",
        help="also an archive of the CUDA backend with what it needs; CMake's names (%(const)s)",
    )
    add(
        "bench",
        "plain against DFlash decoding; arguments go to `slipstream bench`. `bench native`: the "
        "unpatched tree against ours (bench native --help); `bench ui [--json]`: the window",
    )

    add(
        "server-tests",
        "llama.cpp's own tests of llama-server on our build and on the unpatched one, and what "
        "differs; minutes; --dflash: with the drafter; others go to pytest",
    )

    add(
        "exact",
        "drafted answers of the demo pair against plain ones, token by token, in one type of "
        "weights after the other; --backend gpu, --types q8_0,q4_k_m, --prompts 12, --tokens 200, "
        "--threads 1, --pairs DIR; minutes",
    )
    add(
        "variants",
        "the engine's wheel for any processor: each of its CPU variants tries itself out and "
        "answers with and without drafter; --only sse42,haswell, --types, --prompts, --tokens; "
        "minutes each",
    )
    add(
        "nvidia",
        "on a machine with an NVIDIA card: CUDA and Vulkan from one folder, both listed, both "
        "answering as without the drafter, their speed, and estimates of memory against "
        "nvidia-smi; --pair TARGET DRAFT; minutes",
    )
    add(
        "divergence",
        "what each type of weights takes away of the demo's target: bytes, KL divergence from "
        "BF16, errors; --parts: one step more for one part of a layer at a time; minutes",
    )
    add(
        "full-size",
        "converts a checkpoint of the size of Qwen3.5-4B, by chance, on two cores: time, memory "
        "and disk; --folder with 13 GB free, --type, --layers; minutes",
    )
    add(
        "fuzz",
        "20,000 damaged models, each opened and asked in a process of its own, which has to end "
        "with an answer or a typed error; --times, --from; half an hour on two cores",
    )
    add(
        "smoke",
        "the .deb and the tar.zst of dist/ tried out in bare Debian and Ubuntu: installed, clicked "
        "through, upgraded, removed; options of installers/smoke.py; as root, minutes",
    )
    add(
        "reproduce",
        "the package of dist/ once more from nothing, elsewhere: names what differs; half an hour",
    )
    add("splits", "20,000 documents of Markdown by chance: every split renders as the whole; long")

    # What follows these is not ours to read, `dev.py run --help` excepted.
    argv = sys.argv[1:]
    others = (
        "run",
        "test",
        "bench",
        "server-tests",
        "exact",
        "variants",
        "nvidia",
        "divergence",
        "full-size",
        "fuzz",
        "smoke",
    )
    ours = 1 if argv[:1] and argv[0] in others else len(argv)
    if argv[ours:] and argv[ours] in ("-h", "--help"):
        ours += 1
    rest = argv[ours:]
    args = parser.parse_args(argv[:ours])
    try:
        asked = args.command
        if asked == "setup":
            setup(extras=True, repair=True)
            return backends(args.backends)
        if asked == "backends":
            return backends(args.backends)
        if asked == "run":
            setup(extras=False)
            backends_beside()
            return call([python_of(VENV), "-m", "app", *rest])
        if asked == "test":
            return test(rest)
        if asked == "check":
            setup(extras=True)
            return check()
        if asked == "fix":
            setup(extras=True)
            fixed = call(tool("ruff", "check", "--fix", "."))
            return call(tool("ruff", "format", ".")) or fixed
        if asked == "native":
            if args.rebase:
                print(native("--rebase", args.rebase), flush=True)
                return 0
            system_packages()
            if args.vulkan:
                vulkan_packages()
            names = ("tools", "base", "portable", "vulkan", "source")
            flags = [f"--{name}" for name in names if vars(args)[name]]
            flags += ["--cuda", args.cuda] if args.cuda else []
            print(native(*flags), flush=True)
            return 0
        if asked == "lock":
            return lock()
        if asked == "server-tests":
            return server_tests(rest)
        if asked in PROGRAMS:
            setup(extras=False)
            return call([python_of(VENV), "-m", PROGRAMS[asked], *rest])
        if asked == "variants":
            setup(extras=False)
            wheel = native("--portable")
            return call([python_of(VENV), "-m", "tests.engine.variants", wheel, *rest])
        if asked == "nvidia":
            setup(extras=False)
            backends(None)
            return call([python_of(VENV), "-m", "tests.native.nvidia", *rest])
        if asked == "fuzz":
            setup(extras=True)
            return call([python_of(VENV), "-m", "tests.engine.fuzz", *rest])
        if asked == "splits":
            setup(extras=True)
            env = {"SLIPSTREAM_DOCUMENTS": "20000", "QT_QPA_PLATFORM": "offscreen"}
            # Without the comparison with markdown-it: of so many documents it gets some wrong.
            tests = "tests/ui/markdown/test_splits.py::test_every_split_renders_as_the_whole"
            return call([python_of(VENV), "-m", "pytest", tests], env=env)
        if asked == "package":
            options = ["--homepage", args.homepage, *(["--quick"] if args.quick else [])]
            vulkan = not args.no_vulkan
            dist = args.dist.resolve()
            return package(dist, args.cuda, args.engine, args.wheels, options, vulkan)
        if asked == "smoke":
            return smoke(rest)
        if asked == "reproduce":
            return reproduce()
        if asked == "bench" and rest[:1] == ["native"]:
            return bench_native(rest[1:])
        if asked == "bench" and rest[:1] == ["ui"]:
            setup(extras=True)
            return call([python_of(VENV), "-m", "tests.ui.bench", *rest[1:]])
        if asked == "bench":
            setup(extras=False)
            return call([python_of(VENV), "-m", "app", "bench", *rest])
    except Failed as exc:
        say(str(exc))
        return UNAVAILABLE if isinstance(exc, Unavailable) else 1
    except KeyboardInterrupt:
        return 130
    return 2


if __name__ == "__main__":
    sys.exit(main())
