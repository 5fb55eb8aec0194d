"""GGUF files that others made: opened, repaired and said so, or refused by name."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import pytest

from app.binding import NativePair, NativeVocabulary
from app.convert import WeightType, convert_target
from app.errors import ModelFileError, UnsupportedModelError
from app.library import Pair
from tests.convert import tiny
from tests.engine.test_loading import rewritten

END = "tokenizer.ggml.eos_token_id"
PRE = "tokenizer.ggml.pre"
U32, TEXT = gguf.GGUFValueType.UINT32, gguf.GGUFValueType.STRING


def renamed(source: Path, to: Path, key: str, name: str) -> Path:
    """A copy in which `key` has another name of the same length: it lacks the old one."""
    data = source.read_bytes()
    assert len(key) == len(name)
    assert data.count(key.encode()) == 1
    to.write_bytes(data.replace(key.encode(), name.encode()))
    return to


def test_what_can_only_be_one_thing_is_put_in_and_said(tmp_path: Path, demo_files: Pair) -> None:
    text = "Don't split\tq\u0303 12345 otherwise\r\n"

    def opened(target: Path) -> tuple[int, bool, list[int], str]:
        pair = NativePair(target, n_ctx=256)
        try:
            comma = pair.is_end(11)  # what llama.cpp takes for the end where none is named
            return pair.info.eos, comma, pair.tokenize(text), pair.info.repairs
        finally:
            pair.close()

    whole = opened(demo_files.target)
    assert not whole[1]
    assert not whole[3]
    for key in (END, PRE):
        lacking = renamed(demo_files.target, tmp_path / "x.gguf", key, key[:-1] + "?")
        found = opened(lacking)
        assert found[:3] == whole[:3]
        assert f"`{key}`" in found[3]


def test_an_end_token_outside_of_the_vocabulary(tmp_path: Path, demo_files: Pair) -> None:
    wrong = rewritten(demo_files.target, tmp_path / "x.gguf", {END: (99_999, U32)})
    with NativeVocabulary(wrong) as vocabulary:
        (end,) = vocabulary.tokenize("<|im_end|>")
        assert vocabulary.is_end(end)
        assert not vocabulary.is_end(11)


def test_without_an_end_that_can_be_known_it_is_refused(tmp_path: Path, demo_files: Pair) -> None:
    lacking = renamed(demo_files.target, tmp_path / "x.gguf", END, END[:-1] + "?")
    lacking.write_bytes(lacking.read_bytes().replace(b"<|im_end|>", b"<|im_ond|>"))
    with pytest.raises(ModelFileError, match="which token ends an answer") as caught:
        NativePair(lacking, n_ctx=256)
    assert "x.gguf" in caught.value.message


def test_another_architecture_is_refused_by_name(tmp_path: Path, demo_files: Pair) -> None:
    keys = {"general.architecture": ("llama", TEXT)}
    other = rewritten(demo_files.target, tmp_path / "x.gguf", keys)
    with pytest.raises(UnsupportedModelError, match="`llama`") as caught:
        NativePair(other, n_ctx=256)
    assert "Qwen3.5" in caught.value.remedy


@pytest.mark.parametrize(
    ("version", "word", "remedy"),
    [
        (struct.pack("<I", 1), "version 1", "newer file"),
        (struct.pack("<I", 9), "version 9", "newer Slipstream"),
        (struct.pack(">I", 3), "other byte order", "little-endian"),
    ],
)
def test_a_version_that_no_other_copy_would_mend(
    tmp_path: Path, demo_files: Pair, version: bytes, word: str, remedy: str
) -> None:
    data = bytearray(demo_files.target.read_bytes())
    data[4:8] = version
    (tmp_path / "x.gguf").write_bytes(data)
    with pytest.raises(ModelFileError, match=word) as caught:
        NativePair(tmp_path / "x.gguf", n_ctx=256)
    assert remedy in caught.value.remedy


def split(source: Path, folder: Path, stem: str = "target") -> list[Path]:
    """`source` in two parts, as `gguf-split` writes them."""
    reader = gguf.GGUFReader(source)
    half = len(reader.tensors) // 2
    files = [folder / f"{stem}-{i + 1:05d}-of-00002.gguf" for i in range(2)]
    for i, tensors in enumerate((reader.tensors[:half], reader.tensors[half:])):
        writer = gguf.GGUFWriter(files[i], "")
        writer.kv_data[0].clear()
        for name, old in reader.fields.items():
            if not name.startswith("GGUF.") and i == 0:
                sub = old.types[-1] if len(old.types) > 1 else None
                writer.add_key_value(name, old.contents(), old.types[0], sub_type=sub)
        writer.add_uint16("split.no", i)
        writer.add_uint16("split.count", 2)
        writer.add_int32("split.tensors.count", len(reader.tensors))
        for tensor in tensors:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return files


def test_a_model_in_parts(tmp_path: Path, demo_files: Pair) -> None:
    first, second = split(demo_files.target, tmp_path)
    assert demo_files.draft
    NativePair(first, demo_files.draft, n_ctx=256).close()
    with pytest.raises(ModelFileError, match="part 2 of 2"):
        NativePair(second, n_ctx=256)
    unnamed = first.rename(tmp_path / "whole.gguf")
    with pytest.raises(ModelFileError, match="first of 2 parts") as caught:
        NativePair(unnamed, n_ctx=256)
    assert "00001-of-00002" in caught.value.remedy
    unnamed.rename(first)
    data = second.read_bytes()
    second.write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelFileError, match=r"00002-of-00002.* is incomplete"):
        NativePair(first, n_ctx=256)
    second.unlink()
    with pytest.raises(ModelFileError, match="00002-of-00002"):
        NativePair(first, n_ctx=256)


LOADER = """
import sys; from pathlib import Path
from app.binding import NativePair
from app.errors import SlipstreamError
for name in sys.argv[1:]:
    print(name, flush=True)
    try:
        NativePair(Path(name), n_ctx=64).close()
    except SlipstreamError as error:
        assert error.message and error.remedy
"""


def test_no_key_of_any_type_ends_the_process(tmp_path: Path) -> None:
    """Each key in turn as a number that is absurd, and as a list: refused or ignored."""
    small = tmp_path / "small.gguf"
    convert_target(tiny.write_target(tmp_path / "small"), small, WeightType.F32)
    keys = [name for name in gguf.GGUFReader(small).fields if "." in name]
    keys = [name for name in keys if not name.startswith(("GGUF.", "slipstream.", "general."))]
    files = []
    values: list[tuple[Any, gguf.GGUFValueType]] = [
        (0, U32),
        ([1, 2, 3], gguf.GGUFValueType.ARRAY),
    ]
    for i, key in enumerate(keys):
        for j, field in enumerate(values):
            file = tmp_path / f"{i}-{j}.gguf"
            files.append(str(rewritten(small, file, {key: field})))
    done = subprocess.run(
        [sys.executable, "-c", LOADER, *files],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GGML_NO_BACKTRACE": "1"},
    )
    if done.returncode:
        last = Path(done.stdout.splitlines()[-1]).stem.split("-")
        pytest.fail(f"{keys[int(last[0])]} as {values[int(last[1])]}: {done.stderr[-800:]}")
