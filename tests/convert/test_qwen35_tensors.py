"""What is computed on the way, against independent arithmetic."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader

from app.convert import WeightType, convert_target
from app.convert.heads import ValueHeads
from tests.convert import tiny


def test_decay_is_correctly_rounded(tmp_path: Path) -> None:
    """Also for float32, where exponentials of libraries differ most."""
    shape = tiny.Target(key_heads=2, value_heads=128, linear_dim=2, dtype="F32")
    folder = tiny.write_target(tmp_path / "t", shape)
    convert_target(folder, tmp_path / "x.gguf", WeightType.F32)
    found = {t.name: t.data for t in GGUFReader(tmp_path / "x.gguf").tensors}
    stored = tiny.random_tensors(tiny.target_shapes(shape), "F32", 0)
    for layer in range(3):
        a_log = stored[f"model.language_model.layers.{layer}.linear_attn.A_log"][1]
        tiled = [a_log[key * 64 + i] for i in range(64) for key in range(2)]
        expected = np.array([-math.exp(float(a)) for a in tiled]).astype(np.float32)
        assert found[f"blk.{layer}.ssm_a"].tobytes() == expected.tobytes()


@pytest.mark.parametrize(("keys", "values"), [(2, 6), (4, 8), (3, 3), (1, 5)])
def test_value_heads_meet_their_key_head(keys: int, values: int) -> None:
    """ggml gives value head i the key head i mod keys; heads here carry the number of theirs."""
    heads = ValueHeads(keys, values, 3)
    owner = np.repeat(np.arange(keys), values // keys)
    wanted = np.arange(values) % keys
    assert (heads.scalars(owner) == wanted).all()
    rows = np.repeat(owner, 3)[:, None] * np.ones((1, 5), int)
    assert (heads.rows(rows)[::3, 0] == wanted).all()
    assert (heads.columns(rows.T)[0, ::3] == wanted).all()
    before = np.full((2 * keys * 3, 5), -1)
    mixed = heads.tail(np.concatenate([before, rows]))
    assert (mixed[: len(before)] == -1).all()
    assert (mixed[len(before) :: 3, 0] == wanted).all()


def test_numbers_within_a_head_keep_their_order() -> None:
    heads = ValueHeads(2, 4, 3)
    assert heads.rows(np.arange(12)).tolist() == [0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11]
