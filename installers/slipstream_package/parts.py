"""Whose work is inside: every file of the folder came from a distribution, a package of Debian's,
Python itself or from us. What cannot be told ends the build.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from . import crates
from .crates import TEXTS, Crate
from .errors import PackageError

SHORTEST = 200  # characters; a name is no text of a licence
# Wheels that name a licence and bring no text of it, or no more than the name.
OF_WHEELS = {
    "pyside6-essentials": ("LGPL-3.0-only", ("LGPL-3", "GPL-3")),  # the first adds to the second
    "shiboken6": ("LGPL-3.0-only", ("LGPL-3", "GPL-3")),
    "tokenizers": ("Apache-2.0", ("Apache-2.0",)),
    "latex2mathml": ("MIT", ("latex2mathml",)),
}
# Files in our environment that no wheel brought, by place in the folder: who put them there.
UNOWNED = {re.compile(r"llama_cpp/lib/backends/[^/]+"): "llama_cpp_python"}


@dataclass(frozen=True)
class Within:
    """Others' work inside a part, told by a file's name, in which the version may stand."""

    name: str
    file: re.Pattern[str]
    licence: str
    text: str


WITHIN = (
    Within("llama.cpp and ggml", re.compile(r"(lib)?llama\.(so|dylib|dll)"), "MIT", "llama.cpp"),
    Within("ICU", re.compile(r"libicudata\.so\.(\d+)"), "Unicode-DFS-2016", "ICU"),
    Within(
        "Parts within Qt (HarfBuzz, FreeType, libpng, libjpeg, PCRE2 and others)",
        re.compile(r"(lib)?Qt6?Gui(\.so\.\d+|\.dll)?"),
        "see its text",
        "Qt-within",
    ),
    Within("STIX Two Math", re.compile(r"STIXTwoMath-Regular\.ttf"), "OFL-1.1", "STIXTwoMath"),
    Within("DejaVu Sans", re.compile(r"DejaVuSans\.ttf"), "Bitstream-Vera", "DejaVuSans"),
    Within("unimathsymbols", re.compile(r"unimathsymbols\.txt"), "LPPL-1.3c", "unimathsymbols"),
)


@dataclass(frozen=True)
class Part:
    """`kind` is that of a package URL: pypi, deb, or generic."""

    name: str
    version: str
    kind: str
    licence: str
    text: str
    crates: tuple[Crate, ...] = ()


# Not in any bill of theirs; of which version cannot be told from outside.
RUST = Part(
    "Rust's standard library",
    "",
    "generic",
    "Apache-2.0 AND Unicode-3.0 AND Zlib",
    "\n\n".join(
        (TEXTS / f"{name}.txt").read_text(encoding="utf-8")
        for name in ("Rust", "Apache-2.0", "Unicode-3.0")
    ),
)


def parts(inside: dict[str, str], fonts: Path) -> list[Part]:
    """All parts, by name. `inside` is by place in the folder the file that lies there.

    Raises PackageError for a file that is nobody's, and for a part without a licence's text.
    """
    owners = _owners()
    found: dict[str, Part] = {}
    system: set[Path] = set()
    python = [Path(sysconfig.get_path("stdlib"))]
    if Path(sys.base_prefix) != Path("/usr"):  # a folder of Python's own, with its libraries
        python.append(Path(sys.base_prefix))
    for place, source in inside.items():
        path = Path(source).resolve()
        for within in WITHIN:
            if match := within.file.fullmatch(path.name):
                version = next((group for group in match.groups() if (group or "").isdigit()), "")
                found.setdefault(within.name, _within(within, version))
        if (owner := owners.get(path)) is not None:
            if (name := owner.metadata["Name"]) == "pyinstaller":
                continue  # what of it goes into an app is under the exception of its starter
            found.setdefault(name, _of_distribution(owner))
            if (rust := _rust_within(owner)) is not None:
                found.setdefault(rust.name, rust)
                found.setdefault(RUST.name, RUST)
            if path.suffix in (".so", ".pyd", ".dylib"):
                crates.check(place, path.read_bytes(), rust.crates if rust else ())
        elif any(_below(path, folder) for folder in python):
            found.setdefault("Python", _python())
        elif _below(path, Path("/usr")) or _below(path, Path("/lib")):
            system.add(path)
        elif place == "base_library.zip":  # of modules that Python wants before all others
            found.setdefault("Python", _python())
        elif not any(pattern.fullmatch(Path(place).as_posix()) for pattern in UNOWNED):
            raise PackageError(f"`{place}` came from `{source}`: whose is that?")
    for part in _of_debian(system):
        found.setdefault(part.name, part)
    for text in sorted(fonts.glob("*-OFL.txt")):
        name = text.name.removesuffix("-OFL.txt")
        found[name] = Part(name, "", "generic", "OFL-1.1", text.read_text(encoding="utf-8"))
    found["PyInstaller's starter"] = _starter()
    for part in found.values():
        if len(part.text) < SHORTEST:
            raise PackageError(
                f"there is no text of the licence of {part.name} ({part.licence}): "
                f"put one into {TEXTS} and name it in {Path(__file__).name}"
            )
    return [found[name] for name in sorted(found, key=str.lower)]


def write(found: list[Part], file: Path) -> None:
    """As the window's Help reads them."""
    rows = [asdict(part) for part in found]
    file.write_bytes(json.dumps(rows, indent=0).encode())


def read(file: Path) -> list[Part]:
    rows = json.loads(file.read_bytes())
    return [
        Part(**row | {"crates": tuple(Crate(**crate) for crate in row["crates"])}) for row in rows
    ]


def _within(within: Within, version: str) -> Part:
    return Part(within.name, version, "generic", within.licence, _added(within.text))


def _added(name: str) -> str:
    return (TEXTS / f"{name}.txt").read_text(encoding="utf-8")


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
    licence = _licence(distribution)
    if not text and key in OF_WHEELS:
        licence, added = OF_WHEELS[key]
        text = "\n\n".join(map(_added, added))
    if not text:
        text = str(distribution.metadata.get("License") or "")
    return Part(name, distribution.version, "pypi", licence, text)


@cache
def _rust_within(distribution: metadata.Distribution) -> Part | None:
    """What the wheel's own bill names, if it has one that names something."""
    name, inside = distribution.metadata["Name"], tuple(crates.within(distribution))
    if not inside:
        return None
    licence, text = "each its own, see the text", crates.text(inside)
    return Part(f"Crates within {name}", distribution.version, "generic", licence, text, inside)


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
