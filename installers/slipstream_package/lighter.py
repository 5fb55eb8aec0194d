"""Parts of others' libraries that nothing here calls, put in again without them: 60 MB of Linux's.

What is left is asked for as before; what is gone is named here with who could have asked for it.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from . import elf
from .desktop import TEMPLATES
from .errors import PackageError

# ICU's data that none of the functions leads to which Qt calls: they convert character sets
# (ucnv), compare texts (ucol), know upper and lower case (u_strTo) and time zones (ucal).
UNREAD = re.compile(
    r"(brkitr|curr|lang|rbnf|region|translit|unit)/.*"  # where lines break, names, spelled numbers
    # how a language writes dates and numbers, of which Qt has tables of its own
    r"|[a-z]{2,3}(_[A-Z][a-z]{3})?(_([A-Z]{2}|\d{3}))?(_[A-Z]+)?\.res"
    r"|.*\.(cfu|spp)"  # names that look alike, names of computers
)
QT_CALLS = re.compile(r"ucnv_\w+|ucol_\w+|ucal_\w+|u_strTo(Upper|Lower)|UCNV_\w+")


def lighten(internal: Path) -> None:
    """`internal` is the folder beside the program. Raises PackageError where a library is not as
    it was when this was written."""
    lighten_icu(internal / "PySide6/Qt/lib")
    lighten_numpy(internal)


def lighten_icu(folder: Path) -> None:
    """ICU's data without what Qt's libraries in `folder` cannot reach."""
    asked = {
        name.rpartition("_")[0]
        for library in folder.glob("libQt6*")
        for name in elf.undefined(library)
        if re.fullmatch(r"(u|U)[a-zA-Z]+_\w+_\d\d", name)
    }
    if unknown := sorted(name for name in asked if not QT_CALLS.fullmatch(name)):
        raise PackageError(f"Qt calls {', '.join(unknown)} of ICU: which data do they read?")
    for library in folder.glob("libicudata.so.*"):
        symbol, content = elf.only_object(library)
        items = {
            name: data
            for name, data in read_items(content).items()
            if not UNREAD.fullmatch(name.partition("/")[2])
        }
        link_data(library, symbol, packed_items(content, items))


def read_items(content: bytes) -> dict[str, bytes]:
    """By name, of a package of ICU's: a header, a table of contents by offsets, names, items.

    https://github.com/unicode-org/icu/blob/main/icu4c/source/common/ucmndata.h
    """
    if content[2:4] != b"\xda\x27" or content[12:16] != b"CmnD":
        raise PackageError("ICU's data are not in the form that is known")
    (base,) = struct.unpack_from("<H", content)
    (count,) = struct.unpack_from("<I", content, base)
    entries = [struct.unpack_from("<II", content, base + 4 + 8 * i) for i in range(count)]
    ends = [offset for _, offset in entries[1:]] + [len(content) - base]
    found = {}
    for (name_at, start), end in zip(entries, ends, strict=True):
        name = content[base + name_at : content.index(b"\0", base + name_at)]
        found[name.decode("ascii")] = content[base + start : base + end]
    return found


def packed_items(content: bytes, items: dict[str, bytes]) -> bytes:
    """A package of `items`, with the header of the package `content`."""
    (base,) = struct.unpack_from("<H", content)
    names, places = b"", []
    for name in items:
        places.append(4 + 8 * len(items) + len(names))
        names += name.encode("ascii") + b"\0"
    at = 4 + 8 * len(items) + len(names)
    at += (gap := -(base + at) % 16)
    table, data = [struct.pack("<I", len(items))], []
    for place, item in zip(places, items.values(), strict=True):
        table.append(struct.pack("<II", place, at))
        data.append(item + bytes(-len(item) % 16))
        at += len(data[-1])
    return b"".join((content[:base], *table, names, bytes(gap), *data))


def link_data(library: Path, symbol: str, content: bytes) -> None:
    """`library` anew: one object, of this name and content."""
    with tempfile.TemporaryDirectory() as folder:
        (data := Path(folder, "data")).write_bytes(content)
        (source := Path(folder, "data.s")).write_text(
            f".section .rodata\n.balign 16\n.globl {symbol}\n.type {symbol}, @object\n"
            f'{symbol}: .incbin "{data}"\n.size {symbol}, {len(content)}\n'
            '.section .note.GNU-stack,"",@progbits\n'
        )
        _compile(library, source)


def lighten_numpy(internal: Path) -> None:
    """NumPy without OpenBLAS and its LAPACK."""
    libraries = internal / "numpy.libs"
    for library in libraries.glob("libscipy_openblas64_*"):
        _compile(library, TEMPLATES / "blas.c")
        linalg = internal / "numpy/linalg"
        for module in linalg.glob("*.so"):
            module.unlink()
        shutil.copyfile(TEMPLATES / "umath_linalg.py", linalg / "_umath_linalg.py")
        has = elf.defined(library)
        for module in (internal / "numpy").rglob("*.so"):
            if lacks := {n for n in elf.undefined(module) if n.startswith("scipy_")} - has:
                raise PackageError(f"NumPy asks for {', '.join(sorted(lacks))}: see blas.c")
        # Of OpenBLAS alone; beside the program there are links to them.
        for kind in ("libgfortran-*", "libquadmath-*"):
            for other in (*libraries.glob(kind), *internal.glob(kind)):
                other.unlink()


def _compile(library: Path, source: Path) -> None:
    command = ["cc", "-std=c11", "-O3", "-fPIC", "-shared", "-s", f"-Wl,-soname,{library.name}"]
    try:
        subprocess.run([*command, source, "-o", library], check=True)
    except OSError as exc:
        raise PackageError("there is no C compiler: apt-get install gcc") from exc
    except subprocess.CalledProcessError as exc:
        raise PackageError(f"{library.name} cannot be linked anew, see above") from exc
