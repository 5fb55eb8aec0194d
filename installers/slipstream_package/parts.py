"""Whose work is inside: every file of the folder came from a distribution, a package of Debian's,
Python itself or from us. What cannot be told ends the build.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from .errors import PackageError

COMMON = Path("/usr/share/common-licenses")
# Their wheels name a licence and bring no text.
TEXTS = {
    "pyside6-essentials": ("LGPL-3", "GPL-3"),  # the first adds to the second
    "shiboken6": ("LGPL-3", "GPL-3"),
}
LICENCES = {"pyside6-essentials": "LGPL-3.0-only", "shiboken6": "LGPL-3.0-only"}
# Inside other parts, under licences of their own.
WITHIN = ("Qt and what it contains: https://doc.qt.io/qt-6/licenses-used-in-qt.html",)


@dataclass(frozen=True)
class Part:
    """`kind` is that of a package URL: pypi, deb, or generic."""

    name: str
    version: str
    kind: str
    licence: str
    text: str


def parts(inside: dict[str, str], fonts: Path) -> list[Part]:
    """All parts, by name. `inside` is by place in the folder the file that lies there."""
    owners = _owners()
    found: dict[str, Part] = {}
    system: set[Path] = set()
    python = (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_config_var("LIBDIR")))
    for place, source in inside.items():
        path = Path(source).resolve()
        if (owner := owners.get(path)) is not None:
            found.setdefault(owner.metadata["Name"], _of_distribution(owner))
        elif any(_below(path, folder) for folder in python):
            found.setdefault("Python", _python())
        elif _below(path, Path("/usr")) or _below(path, Path("/lib")):
            system.add(path)
        elif place == "base_library.zip":  # of modules that Python wants before all others
            found.setdefault("Python", _python())
        elif not _below(path, Path(sys.prefix)):
            raise PackageError(f"`{place}` came from `{source}`: whose is that?")
    for part in _of_debian(system):
        found.setdefault(part.name, part)
    for text in sorted(fonts.glob("*-OFL.txt")):
        name = text.name.removesuffix("-OFL.txt")
        found[name] = Part(name, "", "generic", "OFL-1.1", text.read_text(encoding="utf-8"))
    found["PyInstaller's starter"] = _starter()
    return [found[name] for name in sorted(found, key=str.lower)]


def _below(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder.resolve())


def _owners() -> dict[Path, metadata.Distribution]:
    return {
        Path(str(file.locate())).resolve(): distribution
        for distribution in metadata.distributions()
        for file in distribution.files or ()
    }


def _of_distribution(distribution: metadata.Distribution) -> Part:
    name = distribution.metadata["Name"]
    key = re.sub(r"[-_.]+", "-", name).lower()
    found = [
        file
        for file in distribution.files or ()
        if ".dist-info" in file.parts[0]
        and re.match(r"(licen[cs]e|copying|notice|authors)", file.name, re.IGNORECASE)
    ]
    text = "\n\n".join(Path(str(f.locate())).read_text("utf-8", "replace") for f in found)
    if not text and key in TEXTS:
        text = "\n\n".join((COMMON / common).read_text("utf-8") for common in TEXTS[key])
        text += "\n\n" + "\n".join(WITHIN)
    if not text:
        text = str(distribution.metadata.get("License") or "")
    licence = LICENCES.get(key) or _licence(distribution)
    return Part(name, distribution.version, "pypi", licence, text)


def _licence(distribution: metadata.Distribution) -> str:
    told = distribution.metadata
    if expression := told.get("License-Expression"):
        return str(expression)
    classifiers = [
        c.rpartition(" :: ")[2] for c in told.get_all("Classifier", []) if c.startswith("License")
    ]
    named = str(told.get("License") or "")
    if named and "\n" not in named and len(named) < 60:
        return named
    return " AND ".join(classifiers) or named.split("\n")[0] or "see its text"


def _python() -> Part:
    version = ".".join(map(str, sys.version_info[:3]))
    text = Path(sysconfig.get_path("stdlib"), "LICENSE.txt")
    if not text.is_file():
        text = Path(f"/usr/share/doc/python{sys.version_info[0]}.{sys.version_info[1]}/copyright")
    return Part("Python", version, "generic", "PSF-2.0", text.read_text("utf-8", "replace"))


def _starter() -> Part:
    distribution = metadata.distribution("pyinstaller")
    found = _of_distribution(distribution)
    return Part(
        "PyInstaller's starter",
        distribution.version,
        "generic",
        "GPL-2.0-or-later WITH Bootloader-exception",
        found.text,
    )


def _of_debian(libraries: set[Path]) -> list[Part]:
    found = {}
    for library in sorted(libraries):
        name = _asked("dpkg-query", "--search", str(library)).partition(":")[0].strip()
        if not name:  # /lib is /usr/lib there, and either may be what dpkg knows
            name = _asked("dpkg-query", "--search", f"*/{library.name}").partition(":")[0].strip()
        if not name:
            raise PackageError(f"`{library}` belongs to no package of this system")
        if name in found:
            continue
        version = _asked("dpkg-query", "--show", "--showformat", "${Version}", name)
        text = Path("/usr/share/doc", name, "copyright").read_text("utf-8", "replace")
        licences = re.findall(r"^License: *(\S.*)$", text, re.MULTILINE)
        told = " AND ".join(dict.fromkeys(licences)) or "see its text"
        found[name] = Part(name, version, "deb", told, text)
    return list(found.values())


def _asked(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError as exc:
        raise PackageError(f"`{command[0]}` is missing; packages are made on Debian") from exc
