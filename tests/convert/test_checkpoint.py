"""A broken or foreign checkpoint is refused by name before the output is touched."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFReader

from app.convert import WeightType, convert_pair, convert_target
from app.errors import CheckpointError, SlipstreamError, UnsupportedModelError
from tests.convert import tiny

Spoil = Callable[[Path], None]


def refuse(folder: Path, kind: type[SlipstreamError], *words: str) -> SlipstreamError:
    output = folder.parent / "out" / "x.gguf"
    with pytest.raises(kind) as caught:
        convert_target(folder, output, WeightType.BF16)
    assert type(caught.value) is kind
    for word in words:
        assert word in caught.value.message
    assert caught.value.remedy
    assert not output.parent.exists(), "nothing may be opened before the source is checked"
    return caught.value


def edit(file: str, change: Callable[[dict[str, Any]], object]) -> Spoil:
    return lambda folder: tiny.edit_json(folder / file, lambda values: (change(values), None)[1])


def text(key: str, value: Any) -> Spoil:
    return edit("config.json", lambda c: c["text_config"].__setitem__(key, value))


def rope(key: str, value: Any) -> Spoil:
    return edit(
        "config.json", lambda c: c["text_config"]["rope_parameters"].__setitem__(key, value)
    )


def without(key: str) -> Spoil:
    return edit("config.json", lambda c: c["text_config"].pop(key))


MANY_LAYERS = {"layer_types": None, "num_hidden_layers": 10**12}


@pytest.mark.parametrize(
    ("spoil", "kind", "words"),
    [
        (lambda f: (f / "config.json").unlink(), CheckpointError, ["config.json", "missing"]),
        (lambda f: (f / "config.json").write_text("{"), CheckpointError, ["config.json", "JSON"]),
        (lambda f: (f / "config.json").write_text("[]"), CheckpointError, ["config.json"]),
        (lambda f: (f / "config.json").write_bytes(b"\xff"), CheckpointError, ["config.json"]),
        (
            edit("config.json", lambda c: c.update(architectures=["LlamaForCausalLM"])),
            UnsupportedModelError,
            ["LlamaForCausalLM"],
        ),
        (edit("config.json", lambda c: c.pop("architectures")), CheckpointError, ["architectures"]),
        (
            edit("config.json", lambda c: c.update(quantization_config={"quant_method": "fp8"})),
            UnsupportedModelError,
            ["quantised"],
        ),
        (without("hidden_size"), CheckpointError, ["hidden_size"]),
        (without("rms_norm_eps"), CheckpointError, ["rms_norm_eps"]),
        (text("num_hidden_layers", "4"), CheckpointError, ["num_hidden_layers", "'4'"]),
        (text("num_hidden_layers", True), CheckpointError, ["num_hidden_layers"]),
        (text("vocab_size", -1), CheckpointError, ["vocab_size", "-1"]),
        (text("layer_types", ["full_attention"]), CheckpointError, ["layer_types"]),
        (text("layer_types", ["mamba"] * 4), CheckpointError, ["layer_types"]),
        (text("linear_num_value_heads", 5), CheckpointError, ["linear_num_value_heads"]),
        (text("linear_key_head_dim", 32), CheckpointError, ["linear_key_head_dim"]),
        (text("attention_bias", True), UnsupportedModelError, ["attention"]),
        (text("attn_output_gate", False), UnsupportedModelError, ["attention"]),
        (
            text("rope_parameters", {"rope_type": "yarn", "factor": 4, "rope_theta": 1e7}),
            UnsupportedModelError,
            ["yarn"],
        ),
        (text("rope_parameters", {"rope_type": "default"}), CheckpointError, ["rope_theta"]),
        # What fits no file, or no memory.
        (text("vocab_size", 2**31), CheckpointError, ["vocab_size", "16777216"]),
        (
            edit("config.json", lambda c: c["text_config"].update(MANY_LAYERS)),
            CheckpointError,
            ["num_hidden_layers", "512"],
        ),
        (text("max_position_embeddings", 2**32), CheckpointError, ["max_position_embeddings"]),
        (text("max_position_embeddings", 10**4000), CheckpointError, ["1000", "…, not"]),
        (text("rms_norm_eps", float("inf")), CheckpointError, ["rms_norm_eps", "inf"]),
        (text("rms_norm_eps", 1e300), CheckpointError, ["rms_norm_eps", "1e+300"]),
        (text("rms_norm_eps", 10**400), CheckpointError, ["rms_norm_eps"]),
        (rope("mrope_section", 3), CheckpointError, ["mrope_section"]),
        (rope("mrope_section", [3, None, 2]), CheckpointError, ["mrope_section"]),
        (rope("mrope_section", [3, 2**40, 2]), CheckpointError, ["mrope_section", "65536"]),
        (rope("partial_rotary_factor", "x"), CheckpointError, ["partial_rotary_factor", "'x'"]),
        (rope("partial_rotary_factor", -1), CheckpointError, ["partial_rotary_factor"]),
        (rope("partial_rotary_factor", 9), CheckpointError, ["partial_rotary_factor", "share"]),
    ],
)
def test_settings(
    target: Path, spoil: Spoil, kind: type[SlipstreamError], words: list[str]
) -> None:
    spoil(target)
    refuse(target, kind, *words)


def test_no_folder(tmp_path: Path) -> None:
    refuse(tmp_path / "nowhere", CheckpointError, "nowhere")


def test_no_weights(target: Path) -> None:
    (target / "model.safetensors").unlink()
    refuse(target, CheckpointError, "model.safetensors", "model.safetensors.index.json")


def test_a_shard_without_its_index(tmp_path: Path) -> None:
    folder = tiny.write_target(tmp_path / "t", shards=2)
    (folder / "model.safetensors.index.json").unlink()
    refuse(folder, CheckpointError, "model.safetensors.index.json")


ADAPTER = ["adapter_config.json", "adapter_model.safetensors"]
OTHER_FILES = [
    (ADAPTER, "adapter", "Merge"),
    (["model-Q4_K_M.gguf"], "GGUF", "open"),
    (["pytorch_model-00001-of-00002.bin"], "PyTorch", "safetensors"),
]


class TestRemediesThatHelp:
    """Where the folder is another than was meant, downloading it again gives the same one."""

    @pytest.mark.parametrize("keep", ["config.json", "nothing"])
    @pytest.mark.parametrize(("names", "what", "remedy"), OTHER_FILES)
    def test_other_files(
        self, target: Path, names: list[str], what: str, remedy: str, keep: str
    ) -> None:
        (target / "model.safetensors").unlink()
        if keep != "config.json":
            (target / "config.json").unlink()
        for name in names:
            (target / name).touch()
        error = refuse(target, UnsupportedModelError, what)
        assert remedy in error.remedy

    def test_one_file_more_is_no_obstacle(self, target: Path, tmp_path: Path) -> None:
        for names, _, _ in OTHER_FILES:
            for name in names:
                (target / name).touch()
        convert_target(target, tmp_path / "x.gguf", WeightType.BF16)

    def test_shapes_of_another_program(self, target: Path) -> None:
        name = "model.language_model.layers.0.linear_attn.conv1d.weight"
        turned = ("BF16", np.zeros((160, 4, 1), np.uint16))
        with_tensors(target, lambda t: t.update({name: turned}))
        error = refuse(target, UnsupportedModelError, name, "[160, 4, 1]", "[160, 1, 4]")
        assert "original" in error.remedy

    def test_no_head_though_the_settings_ask_for_one(self, target: Path) -> None:
        edit("config.json", lambda c: c.update(tie_word_embeddings=False))(target)
        text("tie_word_embeddings", False)(target)
        error = refuse(target, CheckpointError, "lacks", "lm_head.weight")
        assert "`tie_word_embeddings`" in error.remedy


class TestShards:
    @pytest.fixture
    def sharded(self, tmp_path: Path) -> Path:
        return tiny.write_target(tmp_path / "t", shards=2, vision=True, mtp=True)

    @pytest.mark.parametrize("shard", [1, 2])
    def test_missing(self, sharded: Path, shard: int) -> None:
        name = f"model-0000{shard}-of-00002.safetensors"
        (sharded / name).unlink()
        refuse(sharded, CheckpointError, name, "missing")

    @pytest.mark.parametrize("change", [-1, 1])
    def test_of_wrong_length(self, sharded: Path, change: int) -> None:
        file = sharded / "model-00002-of-00002.safetensors"
        data = file.read_bytes()
        file.write_bytes(data[:change] if change < 0 else data + b"\0")
        refuse(sharded, CheckpointError, file.name, f"{len(data) + change:,}", f"{len(data):,}")

    @pytest.mark.parametrize("length", [0, 5, 8, 100])
    def test_cut_in_the_table(self, sharded: Path, length: int) -> None:
        file = sharded / "model-00001-of-00002.safetensors"
        file.write_bytes(file.read_bytes()[:length])
        refuse(sharded, CheckpointError, file.name)

    def test_table_is_a_web_page(self, sharded: Path) -> None:
        file = sharded / "model-00001-of-00002.safetensors"
        file.write_bytes(b"<!DOCTYPE html><html>Not found</html>" * 20)
        refuse(sharded, CheckpointError, file.name)

    def test_tensor_in_no_shard(self, sharded: Path) -> None:
        name = "model.language_model.norm.weight.lost"
        index = "model.safetensors.index.json"
        file = "model-00001-of-00002.safetensors"
        edit(index, lambda i: i["weight_map"].__setitem__(name, file))(sharded)
        refuse(sharded, CheckpointError, name, file)

    def test_tensor_that_the_index_does_not_list(self, sharded: Path) -> None:
        name = "model.language_model.norm.weight"
        edit("model.safetensors.index.json", lambda i: i["weight_map"].pop(name))(sharded)
        refuse(sharded, CheckpointError, name, "not listed")

    @pytest.mark.parametrize("place", ["../model.safetensors", "/etc/passwd", 7])
    def test_index_leads_elsewhere(self, sharded: Path, place: Any) -> None:
        index = "model.safetensors.index.json"
        edit(index, lambda i: i["weight_map"].__setitem__("lm_head.weight", place))(sharded)
        refuse(sharded, CheckpointError, index, "lm_head.weight")

    @pytest.mark.parametrize("content", ["{}", '{"weight_map": []}', "", '{"weight_map": {}}'])
    def test_index_is_broken(self, sharded: Path, content: str) -> None:
        (sharded / "model.safetensors.index.json").write_text(content)
        refuse(sharded, CheckpointError, "model.safetensors.index.json")


class TestTable:
    """The table of a shard that has the right length but tells nonsense."""

    @pytest.mark.parametrize(
        ("entry", "words"),
        [
            ({"dtype": "BF16", "shape": [64], "data_offsets": [0, 100]}, ["bytes of its shape"]),
            ({"dtype": "BF16", "shape": [64]}, ["damaged"]),
            ({"dtype": "BF16", "shape": "64", "data_offsets": [0, "128"]}, ["damaged"]),
            ({"dtype": "BF16", "shape": [64], "data_offsets": [0, 128.0]}, ["damaged"]),
            ({"dtype": "BF16", "shape": [1e999], "data_offsets": [0, 128]}, ["damaged"]),
            ({"dtype": "BF16", "shape": [-8, -8], "data_offsets": [0, 128]}, ["damaged"]),
            ({"dtype": "BF16", "shape": [64], "data_offsets": [8, 136]}, ["neighbour"]),
            ({"dtype": "BF16", "shape": [32], "data_offsets": [0, 64]}, ["128", "64"]),
        ],
    )
    def test_entry(self, target: Path, entry: dict[str, Any], words: list[str]) -> None:
        table = json.dumps({"model.language_model.norm.weight": entry}).encode()
        raw = struct.pack("<Q", len(table)) + table + bytes(128)
        (target / "model.safetensors").write_bytes(raw)
        refuse(target, CheckpointError, "model.safetensors", *([] if "64" in words else words))


def with_tensors(folder: Path, change: Callable[[tiny.Tensors], object], **options: Any) -> None:
    tensors = tiny.random_tensors(tiny.target_shapes(tiny.Target(**options)), "BF16", 0)
    change(tensors)
    tiny.write_tensors(folder, tensors, 1)


class TestTensors:
    NAME = "model.language_model.layers.2.linear_attn.in_proj_qkv.weight"

    def test_missing(self, target: Path) -> None:
        with_tensors(target, lambda t: t.pop(self.NAME))
        refuse(target, CheckpointError, "lacks", "model.layers.2.linear_attn.in_proj_qkv.weight")

    def test_many_missing_are_counted(self, target: Path) -> None:
        with_tensors(target, lambda t: [t.pop(name) for name in list(t)[:9]])
        refuse(target, CheckpointError, "and 4 more")

    def test_of_wrong_shape(self, target: Path) -> None:
        # 2 key heads, 6 value heads of 16: 160 rows, not the 192 of 2 * 2 + 8 heads.
        wrong = ("BF16", np.zeros((192, 64), np.uint16))
        with_tensors(target, lambda t: t.update({self.NAME: wrong}))
        refuse(target, CheckpointError, self.NAME, "[192, 64]", "[160, 64]")

    def test_unexpected(self, target: Path) -> None:
        name = "model.language_model.layers.0.self_attn.q_proj.weight"
        with_tensors(target, lambda t: t.update({name: ("BF16", np.zeros((4, 4), np.uint16))}))
        refuse(target, CheckpointError, "unexpectedly", "model.layers.0.self_attn.q_proj.weight")

    def test_of_a_type_that_is_not_read(self, target: Path) -> None:
        fp8 = ("F8_E4M3", np.zeros((160, 64), np.uint8))
        with_tensors(target, lambda t: t.update({self.NAME: fp8}))
        refuse(target, UnsupportedModelError, self.NAME, "F8_E4M3")

    def test_twice(self, target: Path) -> None:
        copy = ("BF16", np.zeros(64, np.uint16))
        with_tensors(target, lambda t: t.update({"model.norm.weight": copy}))
        refuse(target, CheckpointError, "twice", "model.norm.weight")

    def test_too_large_for_f16(self, target: Path, tmp_path: Path) -> None:
        large = tiny.to_dtype(np.full((160, 64), 1e6), "BF16")
        with_tensors(target, lambda t: t.update({self.NAME: large}))
        with pytest.raises(SlipstreamError, match="too large for F16"):
            convert_target(target, tmp_path / "x.gguf", WeightType.F16)
        assert not list(tmp_path.glob("x.gguf*"))


def test_vision_and_mtp_may_be_of_any_type_and_shape(tmp_path: Path) -> None:
    folder = tiny.write_target(tmp_path / "t")
    odd = {
        "model.visual.blocks.0.x": ("I64", np.zeros(3, np.int64)),
        "mtp.fc.weight": ("F8_E4M3", np.zeros((2, 2), np.uint8)),
    }
    with_tensors(folder, lambda t: t.update(odd))
    done = convert_target(folder, tmp_path / "x.gguf", WeightType.BF16)
    plain = convert_target(tiny.write_target(tmp_path / "p"), tmp_path / "y.gguf", WeightType.BF16)
    assert done.tensors == plain.tensors == 55


def test_what_is_left_out_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tiny.write_target(tmp_path / "t", vision=True, mtp=True)
    with caplog.at_level("INFO", logger="app.convert"):
        convert_target(folder, tmp_path / "x.gguf", WeightType.F16)
    said = [record.getMessage() for record in caplog.records]
    assert any("3 vision tensors" in line for line in said)
    assert any("15 multi-token-prediction tensors" in line for line in said)


@pytest.mark.parametrize("same", [True, False])
def test_a_tied_head_that_is_stored_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, same: bool
) -> None:
    folder = tiny.write_target(tmp_path / "t")

    def add_head(tensors: tiny.Tensors) -> None:
        dtype, values = tensors["model.language_model.embed_tokens.weight"]
        tensors["lm_head.weight"] = dtype, values if same else values[::-1].copy()

    with_tensors(folder, add_head)
    with caplog.at_level("INFO", logger="app.convert"):
        done = convert_target(folder, tmp_path / "x.gguf", WeightType.BF16)
    names = [tensor.name for tensor in GGUFReader(done.path).tensors]
    assert ("output.weight" in names) != same
    assert ("it is kept" in caplog.text) != same


def test_an_index_left_over_beside_a_whole_file(target: Path, tmp_path: Path) -> None:
    shards = {"lm_head.weight": "model-00001-of-00002.safetensors"}
    tiny.write_json(target / "model.safetensors.index.json", {"weight_map": shards})
    assert convert_target(target, tmp_path / "x.gguf", WeightType.BF16).tensors == 55


@pytest.mark.skipif(os.name != "posix", reason="names are Unicode elsewhere")
def test_folders_whose_names_are_no_utf8(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/Mod\xe8les"))
    target = tiny.write_target(root / os.fsdecode(b"caf\xe9"))
    draft = tiny.write_draft(root / "draft")
    done = convert_pair(target, draft, root / "out", WeightType.Q8_0)
    assert GGUFReader(done.target.path).fields["slipstream.source.name"].contents() == "caf\ufffd"
    assert done.draft
    assert done.draft.path.is_file()


def test_half_precision_norms_are_computed_in_full(tmp_path: Path) -> None:
    shape = tiny.Target(dtype="F16")
    done = convert_target(tiny.write_target(tmp_path / "t", shape), tmp_path / "x", WeightType.F32)
    stored = tiny.random_tensors(tiny.target_shapes(shape), "F16", 0)
    found = {tensor.name: tensor.data for tensor in GGUFReader(done.path).tensors}
    norm = stored["model.language_model.norm.weight"][1].astype(np.float32)
    assert (found["output_norm.weight"] == norm + np.float32(1)).all()
