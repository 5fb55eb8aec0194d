"""What differs between two builds is found, and named."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from installers.slipstream_package import compare


def wheel(place: Path, **content: str) -> Path:
    place.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(place, "w") as archive:
        for name, text in content.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return place


def test_files_that_differ_within_an_archive_are_named(tmp_path: Path) -> None:
    one = wheel(tmp_path / "a.whl", x="1", y="2", gone="")
    assert compare.differing(one, wheel(tmp_path / "b.whl", x="1", y="2", gone="")) == []
    assert compare.differing(one, wheel(tmp_path / "c.whl", x="1", y="3", new="")) == [
        "gone", "new", "y",
    ]  # fmt: skip
    other_order = wheel(tmp_path / "d.whl", y="2", x="1", gone="")
    assert compare.differing(one, other_order) == ["the same inside, otherwise packed"]


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb")
def test_packages_of_debian_are_looked_into(tmp_path: Path) -> None:
    made = []
    for number, text in enumerate(("a", "b")):
        root = tmp_path / str(number)
        (root / "DEBIAN").mkdir(parents=True)
        (root / "DEBIAN/control").write_text(
            f"Package: x\nVersion: {number}\nArchitecture: all\n"
            "Maintainer: a <a@example.org>\nDescription: x\n"
        )
        (root / "file").write_text(text)
        made.append(tmp_path / f"{number}.deb")
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-b", root, made[-1]],
            check=True,
            capture_output=True,
        )
    found = compare.differing(*made)
    assert {"./file", "DEBIAN/./control"} <= set(found)


@pytest.mark.parametrize(("other", "status"), [("1", 0), ("2", 1)])
def test_the_command_ends_with_1_where_something_differs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    other: str,
    status: int,
) -> None:
    wheel(tmp_path / "a/x.whl", file="1")
    wheel(tmp_path / "b/x.whl", file=other)
    (tmp_path / "a/x.sizes.json").write_text("{}")
    (tmp_path / "b/x.sizes.json").write_text("{}")
    monkeypatch.setattr("sys.argv", ["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert compare.main() == status
    told = "x.whl: differs: file" if status else "x.whl: the same"
    assert told in capsys.readouterr().out


def test_an_archive_that_only_one_has_differs(tmp_path: Path) -> None:
    assert compare.differing(wheel(tmp_path / "a.whl"), tmp_path / "none.whl")
