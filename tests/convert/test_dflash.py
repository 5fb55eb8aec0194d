"""A drafter that is incomplete, or belongs to another target, is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from gguf import GGUFReader

from app.convert import WeightType, convert_draft
from app.errors import CheckpointError, PairMismatchError, SlipstreamError, UnsupportedModelError
from tests.convert import tiny


def refuse(draft: Path, target: Path, kind: type[SlipstreamError], *words: str) -> None:
    output = draft.parent / "out" / "x.gguf"
    with pytest.raises(kind) as caught:
        convert_draft(draft, target, output, WeightType.BF16)
    assert type(caught.value) is kind
    for word in words:
        assert word in caught.value.message
    assert not output.parent.exists()


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"mask": None}, CheckpointError, ["mask_token_id"]),
        ({"mask": -1}, CheckpointError, ["mask_token_id", "-1"]),
        ({"mask": 320}, CheckpointError, ["mask_token_id", "320"]),
        ({"mask": True}, CheckpointError, ["mask_token_id"]),
        ({"block": None}, CheckpointError, ["block_size"]),
        ({"block": 1}, CheckpointError, ["block_size", "1"]),
        ({"taps": ()}, CheckpointError, ["target_layer_ids"]),
        ({"taps": (0, 1, -1)}, CheckpointError, ["target_layer_ids", "-1"]),
        ({"taps": (0, 1, 1)}, CheckpointError, ["target_layer_ids"]),
        ({"taps": (0, 1, 4)}, PairMismatchError, ["layer 4", "has 4"]),
        ({"taps": (0, 1, 3)}, UnsupportedModelError, ["last of 4 layers"]),
        ({"taps": (0, 1, 33)}, PairMismatchError, ["layer 33", "has 4"]),
        ({"hidden": 128}, PairMismatchError, ["128", "64"]),
        ({"vocab": 256}, PairMismatchError, ["256", "320"]),
        ({"target_layers": 36}, PairMismatchError, ["36 layers", "4"]),
        ({"extra_config": {"layer_types": None}}, CheckpointError, ["layer_types"]),
        ({"extra_config": {"layer_types": ["full_attention"]}}, CheckpointError, ["layer_types"]),
        ({"extra_config": {"use_swa": True}}, UnsupportedModelError, ["use_swa"]),
        ({"extra_config": {"conv_kernel_size": 4}}, UnsupportedModelError, ["conv_kernel_size"]),
        ({"extra_config": {"rope_is_neox_style": False}}, UnsupportedModelError, ["neox"]),
        ({"extra_config": {"hidden_act": "gelu"}}, UnsupportedModelError, ["hidden_act"]),
        ({"extra_config": {"dflash_config": []}}, CheckpointError, ["dflash_config"]),
        (
            {"extra_config": {"architectures": ["DFlash2DraftModel"]}},
            UnsupportedModelError,
            ["DFlash2DraftModel"],
        ),
    ],
)
def test_settings(
    tmp_path: Path,
    target: Path,
    changes: dict[str, Any],
    kind: type[SlipstreamError],
    words: list[str],
) -> None:
    refuse(tiny.write_draft(tmp_path / "draft", **changes), target, kind, *words)


def test_other_taps_than_the_weights_were_made_for(draft: Path, target: Path) -> None:
    def fewer(config: dict[str, Any]) -> None:
        config["dflash_config"]["target_layer_ids"] = [0, 2]

    tiny.edit_json(draft / "config.json", fewer)
    refuse(draft, target, CheckpointError, "fc.weight", "[64, 192]", "[64, 128]")


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
def test_target_is_incomplete(draft: Path, target: Path, file: str) -> None:
    (target / file).unlink()
    refuse(draft, target, CheckpointError, str(target / file), "missing")


def test_target_is_a_drafter(draft: Path) -> None:
    refuse(draft, draft, UnsupportedModelError, "DFlashDraftModel")


def test_target_of_another_architecture(draft: Path, target: Path) -> None:
    tiny.edit_json(target / "config.json", lambda c: c.update(architectures=["Qwen3ForCausalLM"]))
    refuse(draft, target, UnsupportedModelError, str(target), "Qwen3ForCausalLM")


def test_target_weights_are_not_needed(draft: Path, target: Path, tmp_path: Path) -> None:
    (target / "model.safetensors").unlink()
    convert_draft(draft, target, tmp_path / "x.gguf", WeightType.BF16)


def test_own_mask_token_outranks_that_of_the_target(
    draft: Path, target: Path, tmp_path: Path
) -> None:
    tiny.edit_json(
        target / "tokenizer_config.json", lambda c: c.update(mask_token="<|vision_pad|>")
    )
    convert_draft(draft, target, tmp_path / "x.gguf", WeightType.BF16)
    fields = GGUFReader(tmp_path / "x.gguf").fields
    assert fields["tokenizer.ggml.mask_token_id"].contents() == 300


def test_names_with_prefix(draft: Path, target: Path, tmp_path: Path) -> None:
    """Saved by a wrapper: `model.layers...`."""
    plain = convert_draft(draft, target, tmp_path / "x.gguf", WeightType.BF16)
    tensors = tiny.random_tensors(tiny.draft_shapes(tiny.Draft()), "BF16", 1)
    wrapped = {f"model.{name}": tensor for name, tensor in tensors.items()}
    tiny.write_tensors(draft, wrapped, 1)
    assert convert_draft(draft, target, tmp_path / "y.gguf", WeightType.BF16).sha256 == plain.sha256


def test_both_files_tell_their_pair(draft: Path, target: Path, tmp_path: Path) -> None:
    from app.convert import convert_pair

    pair = convert_pair(target, draft, tmp_path / "out", WeightType.F16)
    assert pair.draft
    cards = [passport(pair.target.path), passport(pair.draft.path)]
    for key in cards[0]:
        same = cards[0][key] == cards[1][key]
        assert same == (key.startswith("pair.") or key in ("format", "recipe")), key
    other = shutil.copytree(target, tmp_path / "other")
    tiny.edit_json(other / "tokenizer.json", lambda t: t["model"]["merges"].pop())
    stranger = convert_pair(other, draft, tmp_path / "out2", WeightType.F16).target.path
    assert passport(stranger)["pair.tokenizer_sha256"] != cards[1]["pair.tokenizer_sha256"]


def passport(path: Path) -> dict[str, Any]:
    return {
        name.removeprefix("slipstream."): field.contents()
        for name, field in GGUFReader(path).fields.items()
        if name.startswith("slipstream.")
    }
