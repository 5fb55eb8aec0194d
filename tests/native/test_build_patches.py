"""Patches apply strictly and in order, or the build says which one and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from slipstream_build import patches
from slipstream_build.errors import BuildError
from slipstream_build.upstream import NATIVE

LINES = [f"line {number}\n" for number in range(1, 21)]


def hunk(old: list[str], new: str, start: int, path: str = "src/a.cpp") -> str:
    """A patch that replaces the middle one of `old` (all context, at line `start`)."""
    middle = len(old) // 2
    body = [f" {line}" for line in old[:middle]] + [f"-{old[middle]}", f"+{new}\n"]
    body += [f" {line}" for line in old[middle + 1 :]]
    head = f"--- a/{path}\n+++ b/{path}\n@@ -{start},{len(old)} +{start},{len(old)} @@\n"
    return head + "".join(body)


@pytest.fixture
def pristine(tmp_path: Path) -> Path:
    (tmp_path / "pristine/src").mkdir(parents=True)
    (tmp_path / "pristine/src/a.cpp").write_text("".join(LINES))
    (tmp_path / "pristine/src/b.cpp").write_text("untouched\n")
    (tmp_path / "patches").mkdir()
    return tmp_path / "pristine"


def apply(pristine: Path, *texts: str) -> dict[str, bytes | None]:
    folder = pristine.with_name("patches")
    for number, text in enumerate(texts, start=1):
        (folder / f"{number:04}-patch.patch").write_text(text)
    return patches.apply(patches.series(folder), pristine)


def test_the_second_patch_sees_what_the_first_did(pristine: Path) -> None:
    first = hunk(LINES[4:9], "first", 5)
    second = hunk([*LINES[5:6], "first\n", *LINES[7:8]], "second", 6)
    changed = apply(pristine, first, second)
    assert set(changed) == {"src/a.cpp"}
    assert changed["src/a.cpp"] == "".join([*LINES[:6], "second\n", *LINES[7:]]).encode()
    assert (pristine / "src/a.cpp").read_text() == "".join(LINES)


def test_a_shift_of_lines_is_no_fuzz(pristine: Path) -> None:
    assert b"new\n" in (apply(pristine, hunk(LINES[4:9], "new", 8))["src/a.cpp"] or b"")


def test_one_differing_context_line_stops_the_build(pristine: Path) -> None:
    good = hunk(LINES[4:9], "new", 5)
    fuzzy = hunk(["line eleven\n", *LINES[11:15]], "new", 11)
    with pytest.raises(BuildError) as caught:
        apply(pristine, good, fuzzy)
    assert "0002-patch.patch" in str(caught.value)
    assert "src/a.cpp:11" in str(caught.value)


def test_files_come_and_go(pristine: Path) -> None:
    create = "--- /dev/null\n+++ b/src/new.cpp\n@@ -0,0 +1 @@\n+hello\n"
    delete = "--- a/src/b.cpp\n+++ /dev/null\n@@ -1 +0,0 @@\n-untouched\n"
    assert apply(pristine, create + delete) == {"src/new.cpp": b"hello\n", "src/b.cpp": None}


@pytest.mark.parametrize("name", ["0002-hole.patch", "fix.patch", "0001_underscore.patch"])
def test_numbers_have_no_holes(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(BuildError, match="0001-what-it-does"):
        patches.series(tmp_path)


def test_every_patch_has_its_row() -> None:
    rows = (NATIVE / "patches" / "README.md").read_text(encoding="utf-8")
    for patch in patches.series(NATIVE / "patches"):
        assert f"| `{patch.name}` |" in rows
