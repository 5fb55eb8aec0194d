"""The head of a GGUF file that is damaged: an error that says so, at once."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from app.convert.gguf_table import read_table
from app.errors import ModelFileError
from app.gguf_header import read_keys
from app.model_folder import find_pair

HUGE = 2**64 - 1


def head(*, tensors: int = 0, keys: int = 1, rest: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, keys) + rest


def key(kind: int, raw: bytes) -> bytes:
    return struct.pack("<Q", 1) + b"k" + struct.pack("<I", kind) + raw


def nested(depth: int) -> bytes:
    return struct.pack("<IQ", 9, 1) * depth + struct.pack("<IQ", 4, 0)


DAMAGED = {
    "keys without end": head(keys=HUGE, rest=key(9, struct.pack("<IQ", 4, 0)) * 20),
    "tensors without end": head(tensors=HUGE, keys=0),
    "a list of numbers": head(rest=key(9, struct.pack("<IQ", 10, HUGE))),
    "a list of texts": head(rest=key(9, struct.pack("<IQ", 8, HUGE) + bytes(10_000))),
    "a text in a list": head(rest=key(9, struct.pack("<IQQ", 8, 2, HUGE))),
    "a text": head(rest=key(8, struct.pack("<Q", HUGE))),
    "a name": head(rest=struct.pack("<Q", HUGE)),
    "lists in lists": head(rest=key(9, nested(100_000))),
    "a wide list of lists": head(rest=key(9, struct.pack("<IQ", 9, HUGE))),
    "another type": head(rest=key(77, bytes(8))),
    "a tensor's shape": head(tensors=1, keys=0, rest=struct.pack("<QI", 0, 2**32 - 1) + bytes(99)),
    "a tensor's type": head(tensors=1, keys=0, rest=struct.pack("<QIIQ", 0, 0, 999, 0)),
    "nothing": b"",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_head_is_refused_at_once(name: str, tmp_path: Path) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(DAMAGED[name])
    start = time.thread_time()
    with pytest.raises(ValueError, match=r"."):
        read_table(file)
    if "tensor" not in name:
        with pytest.raises(ValueError, match=r"."):
            read_keys(file, ("general.architecture",))
    with pytest.raises(ModelFileError, match=r"x\.gguf"):
        find_pair(tmp_path)
    assert time.thread_time() - start < 2
