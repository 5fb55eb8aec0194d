"""What programs and libraries of Linux ask of the system that they run on."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .errors import PackageError

MAGIC = b"\x7fELF"


@dataclass(frozen=True)
class Needs:
    """Names of libraries, and by library the versions of its symbols."""

    libraries: tuple[str, ...] = ()
    versions: frozenset[tuple[str, str]] = frozenset()  # ("libc.so.6", "GLIBC_2.34")


def files(folder: Path) -> Iterator[Path]:
    """All programs and libraries below; links are left out."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as content:
                if content.read(4) == MAGIC:
                    yield file


@cache
def needs(file: Path) -> Needs:
    # in the environment that packs, and no other
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerNeedSection

    libraries: list[str] = []
    versions: set[tuple[str, str]] = set()
    with file.open("rb") as content:
        if content.read(4) != MAGIC:
            return Needs()
        for section in ELFFile(content).iter_sections():
            if isinstance(section, DynamicSection):
                libraries += [tag.needed for tag in section.iter_tags("DT_NEEDED")]
            elif isinstance(section, GNUVerNeedSection):
                for library, symbols in section.iter_versions():
                    versions |= {(library.name, symbol.name) for symbol in symbols}
    return Needs(tuple(libraries), frozenset(versions))


def undefined(file: Path) -> set[str]:
    """Names that it asks other libraries for."""
    return {line.split()[-1].partition("@")[0] for line in _names(file, "--undefined-only")}


def defined(file: Path) -> set[str]:
    """Names that others may ask it for."""
    return {line.split()[-1].partition("@")[0] for line in _names(file, "--defined-only")}


def only_object(file: Path) -> tuple[str, bytes]:
    """Name and content of what a library of 64 bits has that is data and nothing else.

    Raises PackageError where it has more.
    """
    names = _names(file, "--defined-only")
    if len(names) != 1:
        raise PackageError(f"{file.name} has {len(names)} names, where one was expected")
    value, _, name = names[0].split()
    content, start = file.read_bytes(), int(value, 16)
    (table,), (size, count) = (
        struct.unpack_from("<Q", content, 0x28),
        struct.unpack_from("<HH", content, 0x3A),
    )
    for row in range(count):
        address, offset, length = struct.unpack_from("<QQQ", content, table + row * size + 16)
        if address <= start < address + length:
            return name, content[offset + start - address : offset + length]
    raise PackageError(f"{file.name}: `{name}` is in no section")


def _names(file: Path, which: str) -> list[str]:
    """Of the table that the loader reads, as lines of `nm`."""
    try:
        done = subprocess.run(
            ["nm", "--dynamic", which, str(file)], capture_output=True, text=True, check=True
        )
    except OSError as exc:
        raise PackageError("there is no `nm`: apt-get install binutils") from exc
    except subprocess.CalledProcessError as exc:
        raise PackageError(f"`nm` cannot read {file.name}: {exc.stderr.strip()}") from exc
    return done.stdout.splitlines()


def floor(folder: Path) -> dict[str, tuple[str, Path]]:
    """By set of versions (GLIBC, GLIBCXX ...) the newest that is asked for, and who asks."""
    newest: dict[str, tuple[tuple[int, ...], Path]] = {}
    for file in files(folder):
        for _, version in needs(file).versions:
            kind, _, number = version.rpartition("_")
            if not number.replace(".", "").isdigit():
                continue  # GLIBC_PRIVATE, OPENSSL_3.0.0 has a number, names of others have none
            found = tuple(map(int, number.split(".")))
            newest[kind] = max(newest.get(kind, ((), file)), (found, file), key=lambda x: x[0])
    return {kind: (".".join(map(str, found)), file) for kind, (found, file) in newest.items()}


def asked_of_system(folder: Path) -> dict[str, list[Path]]:
    """Libraries that do not lie in the folder, and who asks for each."""
    inside = {file.name for file in folder.rglob("*.so*")}
    asked: dict[str, list[Path]] = {}
    for file in files(folder):
        for library in needs(file).libraries:
            if library not in inside:
                asked.setdefault(library, []).append(file)
    return dict(sorted(asked.items()))


def strip(chosen: Iterable[Path]) -> None:
    """Take away what only a debugger reads. Raises PackageError where that cannot be done."""
    try:
        subprocess.run(["strip", "--strip-unneeded", *chosen], check=True)
    except OSError as exc:
        raise PackageError("there is no `strip`: apt-get install binutils") from exc
    except subprocess.CalledProcessError as exc:
        raise PackageError("`strip` failed, see above") from exc
