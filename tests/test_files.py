"""A small file holds the old text or the new one, never a part of either."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.files import replace_text


def test_it_makes_folder_and_file(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.txt"
    replace_text(file, "é\n")
    replace_text(file, "ü\n")
    assert file.read_bytes() == "ü\n".encode()
    assert list(file.parent.iterdir()) == [file]


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


def test_text_that_is_no_unicode_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "b.txt"
    file.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_text(file, "\udce9")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
