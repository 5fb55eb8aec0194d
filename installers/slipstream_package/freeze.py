"""PyInstaller's folder: made by `slipstream.spec`, then small, and the same for the same commit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import desktop, elf, lighter
from .errors import PackageError
from .parts import Part, read

SPEC = Path(__file__).parents[1] / "slipstream.spec"
LICENCES = "licences.json"  # the spec writes it, of all that it lays
ENGINE = "llama_cpp"


def freeze(work: Path, compiled_in: Path | None, epoch: int) -> tuple[Path, list[Part]]:
    """The folder, and whose work is in it; the engine was `compiled_in` a folder that is known.

    Built from nothing: what PyInstaller keeps of a build before is not looked into.
    """
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    drawn = {"win32": "slipstream.ico", "darwin": "slipstream.icns"}.get(sys.platform, "")
    if drawn:
        desktop.draw(desktop.TEMPLATES / "icon.svg", 256, work / drawn)
    environment = {
        **os.environ,
        # Sets are laid into byte code in the order of their hashes.
        "PYTHONHASHSEED": "0",
        "SOURCE_DATE_EPOCH": str(epoch),
        "PYINSTALLER_CONFIG_DIR": str(work / "config"),
        "SLIPSTREAM_ICON": str(work / drawn) if drawn else "",
        "SLIPSTREAM_LICENCES": str(work / LICENCES),
        "PYTHONPATH": str(SPEC.parent),
    }
    command = [sys.executable, "-P", "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    command += ["--distpath", str(work / "out"), "--workpath", str(work / "build"), str(SPEC)]
    # Not in the repository: modules of the checkout would be found before the installed ones.
    if subprocess.run(command, cwd=work, env=environment, check=False).returncode != 0:
        raise PackageError("PyInstaller failed, see above")
    folder = work / "out" / "slipstream"
    if sys.platform.startswith("linux"):
        lighter.lighten(folder / "_internal")
        _strip(folder)
        places = (work, SPEC.parents[1], Path(sys.prefix))
        look_for_builder(folder, (*places, compiled_in) if compiled_in else places)
    return folder, read(work / LICENCES)


def look_for_builder(folder: Path, places: Iterable[Path]) -> None:
    """Raises PackageError where a file names a place of whoever built it."""
    named = [str(place).encode() + b"/" for place in places]
    told = [
        str(file.relative_to(folder))
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.is_symlink()
        if any(name in file.read_bytes() for name in named)
    ]
    if told:
        raise PackageError(f"folders of this machine are named in {', '.join(told)}")


def settle(folder: Path, epoch: int) -> None:
    """Rights and times that do not tell who built it, and when."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or _is_program(path) else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def sizes(folder: Path) -> dict[str, int]:
    """Bytes by part, the largest first."""
    found: dict[str, int] = {}
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            part = _part(file.relative_to(folder))
            found[part] = found.get(part, 0) + file.stat().st_size
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _strip(folder: Path) -> None:
    """What only a debugger reads, out of Python's own libraries, modules of wheels, ICU and the
    engine.

    Not libraries that were moved into wheels (`NAME.libs`): their tables were laid anew, and
    `strip` is known to break those. Qt's are without it. Not the program, which has its archive
    behind it.
    """
    internal = folder / "_internal"
    chosen = [
        file
        for file in elf.files(internal)
        if file.name.startswith("libicu")
        or not any(part.endswith(".libs") or part in ("PySide6", "shiboken6")
                   for part in file.relative_to(internal).parts)
    ]  # fmt: skip
    elf.strip(chosen)


def _is_program(path: Path) -> bool:
    if ".so" in path.name:  # nobody starts a library
        return False
    with path.open("rb") as content:
        return content.read(4) == elf.MAGIC


def _part(place: Path) -> str:
    parts = place.parts
    name = place.name
    rules: list[tuple[bool, str]] = [
        ("demo" in parts, "built-in guide (two models)"),
        ("vulkan" in name, "engine: Vulkan backend"),
        (ENGINE in parts, "engine: CPU and the rest"),
        (name.startswith("libicu"), "ICU, which Qt links to"),
        ("translations" in parts, "translations of Qt"),
        ("PySide6" in parts and name.endswith((".abi3.so", ".11")), "Qt's bindings for Python"),
        ("PySide6" in parts or "shiboken6" in parts, "Qt"),
        ("numpy" in parts or "numpy.libs" in parts, "NumPy"),
        ("cryptography" in parts, "cryptography (the system's store of secrets)"),
        ("tokenizers" in parts, "tokenizers"),
        ("hf_xet" in parts, "hf_xet (downloads)"),
        (name == "slipstream", "all Python code"),
        ("python3" in name or "lib-dynload" in parts or name == "base_library.zip", "Python"),
        ("assets" in parts, "typefaces, icons, licences"),
    ]
    return next((part for holds, part in rules if holds), "small libraries")


def measure(folder: Path) -> dict[str, Any]:
    """What the README tells: bytes in all and by part, and the floors."""
    parts = sizes(folder)
    floors = {kind: version for kind, (version, _) in sorted(elf.floor(folder).items())}
    return {"bytes": sum(parts.values()), "parts": parts, "floors": floors}
