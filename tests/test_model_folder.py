"""Files of any name are found by what they are; what cannot be used is named."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from app.errors import ModelFileError, UnsupportedModelError
from app.model_folder import PairFiles, find_pair


def header(path: Path, architecture: str) -> Path:
    """The head of a GGUF file that names its architecture behind an array and a number."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    keys = [
        text("a.list") + struct.pack("<IIQ", 9, 8, 2) + text("x") + text("yy"),
        text("a.number") + struct.pack("<If", 6, 0.5),
        text("general.architecture") + struct.pack("<I", 8) + text(architecture),
    ]
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, len(keys)) + b"".join(keys))
    return path


def test_named_files_are_taken_unread(tmp_path: Path) -> None:
    (tmp_path / "target-q8_0.gguf").touch()
    (tmp_path / "draft-q8_0.gguf").touch()
    (tmp_path / "other.gguf").touch()
    pair = PairFiles(tmp_path / "target-q8_0.gguf", tmp_path / "draft-q8_0.gguf")
    assert find_pair(tmp_path) == pair
    assert find_pair(pair.target) == pair


def test_others_are_told_apart_by_their_architecture(tmp_path: Path) -> None:
    target = header(tmp_path / "Qwen3.5-4B-Q4_K_M.gguf", "qwen35")
    draft = header(tmp_path / "DFlash.gguf", "dflash")
    header(tmp_path / "mmproj-F16.gguf", "clip")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    assert find_pair(tmp_path) == PairFiles(target, draft)
    assert find_pair(target) == PairFiles(target, None)
    header(tmp_path / "Qwen3.5-4B-Q8_0.gguf", "qwen35")
    with pytest.raises(ModelFileError, match=r"more than one.*Q4_K_M.*Q8_0"):
        find_pair(tmp_path)


def test_another_architecture_is_refused_by_name(tmp_path: Path) -> None:
    header(tmp_path / "x.gguf", "llama")
    with pytest.raises(UnsupportedModelError, match=r"`x\.gguf` \(llama\)"):
        find_pair(tmp_path)


def test_a_drafter_alone(tmp_path: Path) -> None:
    header(tmp_path / "x.gguf", "dflash")
    with pytest.raises(ModelFileError, match="not its target"):
        find_pair(tmp_path)


def test_damaged_files(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF\3\0\0\0" + b"\xff" * 40)
    with pytest.raises(ModelFileError, match="damaged"):
        find_pair(tmp_path)


def test_of_a_model_in_parts_the_first(tmp_path: Path) -> None:
    for i in range(1, 4):
        (tmp_path / f"target-bf16-{i:05d}-of-00003.gguf").touch()
    found = find_pair(tmp_path)
    assert found.target.name == "target-bf16-00001-of-00003.gguf"
    with pytest.raises(ModelFileError, match="later part"):
        find_pair(tmp_path / "target-bf16-00002-of-00003.gguf")


def test_a_name_that_is_mistyped(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as refused:
        find_pair(tmp_path / "tagret.gguf")
    assert "not there" in refused.value.remedy


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"no `target\*\.gguf`"):
        find_pair(tmp_path)
    with pytest.raises(ModelFileError):
        find_pair(tmp_path / "absent.gguf")
    (tmp_path / "target.gguf").symlink_to("/absent/target.gguf")
    with pytest.raises(ModelFileError) as caught:
        find_pair(tmp_path)
    assert "/absent" in caught.value.remedy
