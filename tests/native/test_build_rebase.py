"""Another upstream source distribution: what fits, and the hunks to mend by name."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from slipstream_build import patches, rebase, tree, upstream
from slipstream_build.errors import BuildError

OLD = [f"line {number}\n" for number in range(1, 31)]


def hunk(line: int, old: str, new: str, content: list[str] = OLD) -> str:
    """Replace line `line` (from 1) between two lines of context."""
    before, after = content[line - 3 : line - 1], content[line : line + 2]
    body = [*(f" {text}" for text in before), f"-{old}\n", f"+{new}\n", *(f" {t}" for t in after)]
    return f"@@ -{line - 2},5 +{line - 2},5 @@\n" + "".join(body)


def patch_of(path: str, *hunks: str) -> str:
    return f"why\n\n--- a/{path}\n+++ b/{path}\n" + "".join(hunks)


@pytest.fixture
def native(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "native"
    (folder / "patches").mkdir(parents=True)
    (folder / "patches/0001-two.patch").write_text(
        patch_of("a.cpp", hunk(5, "line 5", "five"), hunk(20, "line 20", "-- twenty"))
        + patch_of("gone.cpp", hunk(5, "line 5", "five"))
    )
    (folder / "patches/0002-more.patch").write_text(
        patch_of("a.cpp", hunk(21, "line 21", "21", [*OLD[:19], "-- twenty\n", *OLD[20:]]))
    )
    monkeypatch.setattr(upstream, "NATIVE", folder)
    monkeypatch.setattr(tree, "NATIVE", folder)
    monkeypatch.setenv("SLIPSTREAM_CACHE", str(tmp_path / "cache"))
    return folder


def sdist(tmp_path: Path, **files: list[str]) -> str:
    archive = tmp_path / "llama_cpp_python-9.9.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, lines in files.items():
            content = "".join(lines).encode()
            info = tarfile.TarInfo(f"llama_cpp_python-9.9/{name.replace('_', '.')}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return str(archive)


def test_what_fits_gives_the_patched_tree(tmp_path: Path, native: Path) -> None:
    made = rebase.rebase(sdist(tmp_path, a_cpp=["new\n", *OLD], gone_cpp=OLD))
    expected = ["new\n", *OLD]
    expected[5], expected[20], expected[21] = "five\n", "-- twenty\n", "21\n"
    assert (made / "a.cpp").read_text() == "".join(expected)


def test_each_hunk_that_does_not_is_named(tmp_path: Path, native: Path) -> None:
    new = [*OLD[:18], "line nineteen\n", *OLD[19:]]
    with pytest.raises(BuildError) as caught:
        rebase.rebase(sdist(tmp_path, a_cpp=new))
    where, *lines = str(caught.value).splitlines()
    assert [line.strip() for line in lines] == [
        "0001-two: a.cpp: hunk 2 of 2, line 18",
        "0001-two: gone.cpp: no such file",
        "0002-more: a.cpp: hunk 1 of 1, line 19 (after 0001-two, which may be the cause)",
    ]
    place = Path(where.removeprefix("to mend in ").removesuffix(":"))
    assert "five\n" in (place / "a.cpp").read_text()
    assert "-- twenty" in (place / "a.cpp.0001-two.rej").read_text()
    assert "+21" in (place / "a.cpp.0002-more.rej").read_text()


def test_a_file_of_ours_that_upstream_has_now(tmp_path: Path, native: Path) -> None:
    (native / "llama").mkdir()
    (native / "llama/kernel.cpp").write_text("ours")
    archive = sdist(tmp_path, a_cpp=OLD, gone_cpp=OLD, **{"vendor/llama.cpp/kernel_cpp": ["x\n"]})
    with pytest.raises(BuildError, match=r"vendor/llama\.cpp/kernel\.cpp: upstream has a file"):
        rebase.rebase(archive)


def test_a_version_that_does_not_exist(native: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*args: object, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "no matching distribution")

    (native / "UPSTREAM.toml").write_text(
        'name = "llama-cpp-python"\nversion = "1"\nsdist = "s"\nsha256 = "0"\nbuild = "b"\n'
    )
    monkeypatch.setattr(upstream.subprocess, "run", run)
    with pytest.raises(BuildError, match="no matching distribution"):
        rebase.rebase("0.0.0")


def test_sections_are_what_a_build_applies() -> None:
    """All of each patch lies in some section: none is overlooked by the report."""
    for patch in patches.series(upstream.NATIVE / "patches"):
        text = patch.read_text(encoding="utf-8")
        assert text.endswith("".join(section.text for section in patches.sections(patch)))
        assert all(section.lines for section in patches.sections(patch))
