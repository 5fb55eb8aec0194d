"""The C header is the specification: it compiles as C, and the library has what it says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from app.binding import MAX_BLOCK, library
from app.binding.records import ACCEPTANCE_RATES
from app.errors import NativeLibraryError

HEADER = Path(__file__).resolve().parents[2] / "native" / "include" / "slipstream.h"
DECLARED = set(re.findall(r"^SLIP_API [^(]*?\b(slip_\w+)\(", HEADER.read_text("utf-8"), re.M))


def test_the_header_compiles_as_c99() -> None:
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
    subprocess.run([*command, "-x", "c", str(HEADER)], check=True)


def test_the_library_exports_the_header_and_nothing_else() -> None:
    command = ["nm", "-D", "--defined-only", "--format=posix", str(library.library_path())]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    exported = {line.split()[0] for line in listed.splitlines()}
    assert exported == DECLARED


def test_python_declares_all_of_it() -> None:
    text = Path(library.__file__).read_text("utf-8")
    assert {name for name in DECLARED if f'"{name}"' in text or f".{name}" in text} == DECLARED


def test_numbers_agree_with_the_header() -> None:
    text = HEADER.read_text("utf-8")
    assert f"#define SLIP_ABI {library.ABI}\n" in text
    assert f"#define SLIP_MAX_BLOCK {MAX_BLOCK} " in text
    assert f"#define SLIP_ACCEPTANCE_RATES {ACCEPTANCE_RATES}\n" in text


def test_another_abi_is_refused_with_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    library.library.cache_clear()
    monkeypatch.setattr(library, "ABI", library.ABI + 1)
    with pytest.raises(NativeLibraryError, match="libslipstream"):
        library.library()
    library.library.cache_clear()


def test_a_missing_library_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(NativeLibraryError) as caught:
        library.library_path()
    assert "dev.py setup" in caught.value.remedy
