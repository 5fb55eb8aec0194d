"""What is kept between runs, and what is left of it when the file is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app import kept


def test_findings_stand_beside_each_other(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "found.json"
    kept.keep(file, "a", {"x": 1})
    kept.keep(file, "b", [2])
    assert kept.find(file, "a") == {"x": 1}
    assert kept.find(file, "c") is None
    assert [path.name for path in file.parent.iterdir()] == ["found.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00", "[" * 100_000])
def test_what_is_damaged_is_found_anew(tmp_path: Path, text: str) -> None:
    file = tmp_path / "found.json"
    file.write_text(text)
    assert kept.find(file, "a") is None
    kept.keep(file, "a", 1)
    assert kept.find(file, "a") == 1


def test_only_the_last_findings_are_remembered(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    for i in range(70):
        kept.keep(file, str(i), i)
    assert len(json.loads(file.read_text())) == 64
    assert kept.find(file, "5") is None
    assert kept.find(file, "69") == 69
