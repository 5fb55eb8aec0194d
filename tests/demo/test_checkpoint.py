"""The checkpoints on disk: size, fields and the parts that must fit each other."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

DEMO = Path(__file__).parents[2] / "assets" / "demo"


def config(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((DEMO / name / "config.json").read_text(encoding="utf-8"))
    return data


def header(name: str) -> dict[str, Any]:
    with (DEMO / name / "model.safetensors").open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        tensors: dict[str, Any] = json.loads(file.read(size))
    tensors.pop("__metadata__", None)
    return tensors


def test_pair_is_small() -> None:
    files = [path for name in ("target", "draft") for path in (DEMO / name).iterdir()]
    assert sum(path.stat().st_size for path in files) < 25_000_000


def test_every_tensor_is_bf16() -> None:
    for name in ("target", "draft"):
        assert {tensor["dtype"] for tensor in header(name).values()} == {"BF16"}


def test_tensor_names_are_those_of_the_real_pair() -> None:
    assert all(name.startswith("model.language_model.") for name in header("target"))
    draft = config("draft")
    assert len(header("draft")) == 3 + 11 * draft["num_hidden_layers"]
    assert {"fc.weight", "hidden_norm.weight", "norm.weight"} <= set(header("draft"))


def test_drafter_fits_the_target() -> None:
    target, draft = config("target")["text_config"], config("draft")
    taps = draft["dflash_config"]["target_layer_ids"]
    assert max(taps) + 1 < target["num_hidden_layers"] == draft["num_target_layers"]
    assert draft["vocab_size"] == target["vocab_size"]
    width = len(taps) * target["hidden_size"]
    assert header("draft")["fc.weight"]["shape"] == [draft["hidden_size"], width]


def test_markers_have_the_ids_of_the_configs() -> None:
    text = (DEMO / "target" / "tokenizer.json").read_text(encoding="utf-8")
    ids = {token["content"]: token["id"] for token in json.loads(text)["added_tokens"]}
    assert config("target")["text_config"]["eos_token_id"] == ids["<|im_end|>"]
    assert config("draft")["dflash_config"]["mask_token_id"] == ids["<|mask|>"]
    assert max(ids.values()) == config("target")["text_config"]["vocab_size"] - 1
