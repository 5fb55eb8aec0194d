"""A small file holds the old text or the new one, never a part of either."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.errors import OutputError
from app.files import check_writable, replace_bytes, replace_text


def test_it_makes_folder_and_file(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.txt"
    replace_text(file, "é\n")
    replace_text(file, "ü\n")
    assert file.read_bytes() == "ü\n".encode()
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.skipif(os.name != "posix", reason="links are made by anybody there")
def test_a_link_still_leads_to_its_file(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept" / "settings.toml", tmp_path / "settings.toml"
    kept.parent.mkdir()
    link.symlink_to(kept)
    for text in ("new", "newer"):  # also where it leads to nothing yet
        replace_text(link, text)
        assert link.is_symlink()
        assert kept.read_text() == text
    assert list(kept.parent.iterdir()) == [kept]


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    def fail(_: int) -> None:
        raise fault

    file = tmp_path / "b.txt"
    file.write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(fault)):
        replace_text(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_bytes_are_kept_as_they_are(tmp_path: Path) -> None:
    replace_bytes(tmp_path / "b.pdf", b"%PDF\r\n\xff\n")
    assert (tmp_path / "b.pdf").read_bytes() == b"%PDF\r\n\xff\n"


def test_text_that_is_no_unicode_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "b.txt"
    file.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_text(file, "\udce9")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_where_files_can_be_made(tmp_path: Path) -> None:
    check_writable(tmp_path)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    # To root, only the kernel's own folders are closed.
    closed = (tmp_path / "absent", tmp_path / "file", Path("/proc/self"))
    for folder in closed if os.name == "posix" else closed[:2]:
        with pytest.raises(OutputError, match="no file can be made"):
            check_writable(folder)


@pytest.mark.skipif(os.name != "posix", reason="names are Unicode elsewhere")
def test_a_folder_whose_name_cannot_be_kept(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    with pytest.raises(OutputError, match="UTF-8"):
        check_writable(folder)
