"""Bad input at load: a typed error that names file and reason."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from app import paths
from app.binding import NativePair, devices, remember_speed
from app.engine import Backend, LoadParams, key, pair, template
from app.engine.fake import FAKE_CPU, FAKE_GPU
from app.engine.pair import LoadedPair
from app.errors import (
    DeviceError,
    ModelFileError,
    OptionError,
    OutOfMemoryError,
    PairMismatchError,
    SlipstreamError,
    TemplateError,
    UnsupportedModelError,
)
from app.library import Pair


def load(target: Path, draft: Path | None = None) -> None:
    NativePair(target, draft, n_ctx=256).close()


def refused(kind: type[SlipstreamError], target: Path, draft: Path | None, *words: str) -> None:
    with pytest.raises(kind) as caught:
        load(target, draft)
    for word in words:
        assert word in caught.value.message
    assert caught.value.remedy


def test_a_load_says_how_far_it_is_not_for_each_tensor(demo_files: Pair) -> None:
    told: list[float] = []

    def progress(fraction: float) -> bool:
        told.append(fraction)
        return True

    began = time.perf_counter()
    NativePair(demo_files.target, demo_files.draft, n_ctx=256, progress=progress).close()
    most = (
        4 + (time.perf_counter() - began) / 0.05
    )  # each file's begin and end, and so often between
    assert told == sorted(told)
    assert told[0] == 0.0
    assert told[-1] == 1.0
    assert len(told) <= most


def test_a_missing_file(tmp_path: Path) -> None:
    refused(ModelFileError, tmp_path / "no.gguf", None, "no.gguf")


@pytest.mark.parametrize("content", [b"", b"GG", b"GGUF", b"{}", b"PK\x03\x04" + bytes(100)])
def test_a_foreign_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.gguf"
    path.write_bytes(content)
    refused(ModelFileError, path, None, "foreign.gguf")


@pytest.mark.parametrize("keep", [0.001, 0.1, 0.5, 0.999])
def test_a_truncated_file(tmp_path: Path, demo_files: Pair, keep: float) -> None:
    whole = demo_files.target.read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(whole[: int(len(whole) * keep)])
    refused(ModelFileError, path, None, "cut.gguf")


def test_a_file_cut_by_one_byte_says_how_much_is_missing(tmp_path: Path, demo_files: Pair) -> None:
    assert demo_files.draft
    whole = demo_files.draft.read_bytes()
    path = tmp_path / "cut.gguf"
    # the file may end in padding: cut into the last tensor
    path.write_bytes(whole[: len(whole) - 33])
    refused(ModelFileError, demo_files.target, path, "incomplete", "cut.gguf")


def test_target_and_drafter_swapped(demo_files: Pair) -> None:
    assert demo_files.draft
    refused(UnsupportedModelError, demo_files.draft, None, "dflash", "qwen35")
    refused(UnsupportedModelError, demo_files.target, demo_files.target, "qwen35", "dflash")


def edited(source: Path, to: Path, **changes: Any) -> Path:
    """A copy with the value of some whole-number keys replaced in place."""
    shutil.copyfile(source, to)
    reader = gguf.GGUFReader(to, "r+")
    for name, value in changes.items():
        field = reader.fields[name.replace("__", ".")]
        if isinstance(value, dict):
            for index, item in value.items():
                field.parts[field.data[index]][0] = item
        else:
            field.parts[field.data[0]][0] = value
    del reader
    return to


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tokenizer__ggml__mask_token_id": 999_999}, ("mask token",)),
        ({"tokenizer__ggml__mask_token_id": 2**32 - 1}, ("mask token",)),
        ({"dflash__block_size": 0}, ("block size",)),
        ({"dflash__block_size": 65}, ("block size",)),
        ({"dflash__target_layers": {0: 33}}, ("layer 33",)),
        ({"dflash__target_layers": {0: 0}}, ("layer 0",)),
        ({"dflash__embedding_length": 128}, ("hidden size", "128")),
    ],
)
def test_a_drafter_that_does_not_fit(
    tmp_path: Path, demo_files: Pair, changes: dict[str, Any], words: tuple[str, ...]
) -> None:
    assert demo_files.draft
    draft = edited(demo_files.draft, tmp_path / "draft.gguf", **changes)
    refused(PairMismatchError, demo_files.target, draft, "draft.gguf", *words)
    load(demo_files.target, demo_files.draft)  # and the next one works


def test_a_window_wider_than_any_context_is_none(tmp_path: Path, demo_files: Pair) -> None:
    assert demo_files.draft
    wide = {"dflash__attention__sliding_window": 2**31 - 1}
    draft = edited(demo_files.draft, tmp_path / "draft.gguf", **wide)
    load(demo_files.target, draft)


Field = tuple[Any, gguf.GGUFValueType]


def rewritten(
    source: Path,
    to: Path,
    keys: dict[str, Field],
    more: dict[str, NDArray[np.float32]] | None = None,
) -> Path:
    """A copy in which some keys, new ones too, hold these values, and with `more` tensors."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(to, "")
    writer.kv_data[0].clear()
    for name, old in reader.fields.items():
        if name.startswith("GGUF."):
            continue
        if name not in keys:
            sub = old.types[-1] if len(old.types) > 1 else None
            writer.add_key_value(name, old.contents(), old.types[0], sub_type=sub)
    for name, (value, kind) in keys.items():
        writer.add_key_value(name, value, kind)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    for name, data in (more or {}).items():
        writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return to


TEXT, U32, ARRAY = gguf.GGUFValueType.STRING, gguf.GGUFValueType.UINT32, gguf.GGUFValueType.ARRAY
F32 = gguf.GGUFValueType.FLOAT32


@pytest.mark.parametrize(
    ("which", "key", "field"),
    [
        ("draft", "dflash.target_layers", (1, U32)),
        ("draft", "dflash.target_layers", (["1", "2"], ARRAY)),
        ("draft", "dflash.block_size", ("16", TEXT)),
        ("draft", "dflash.block_size", ([16, 16], ARRAY)),
        ("draft", "dflash.block_count", (100_000, U32)),
        ("draft", "tokenizer.ggml.mask_token_id", ("mask", TEXT)),
        ("target", "qwen35.block_count", ([4, 4, 4, 4], ARRAY)),
        ("target", "qwen35.block_count", (100_000, U32)),
        ("target", "qwen35.embedding_length", ("64", TEXT)),
        ("target", "tokenizer.ggml.tokens", ([1, 2, 3], ARRAY)),
        ("target", "tokenizer.ggml.tokens", ("all", TEXT)),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_an_error_and_no_end_of_the_process(
    tmp_path: Path, demo_files: Pair, which: str, key: str, field: tuple[Any, gguf.GGUFValueType]
) -> None:
    assert demo_files.draft
    files = {"target": demo_files.target, "draft": demo_files.draft}
    files[which] = rewritten(files[which], tmp_path / "wrong.gguf", {key: field})
    refused(ModelFileError, files["target"], files["draft"], "wrong.gguf", key)
    if which == "target":
        refused(ModelFileError, files["target"], None, "wrong.gguf")


@pytest.mark.parametrize(
    ("keys", "more", "told"),
    [
        ({}, "markov_w1.weight", "markov_w1.weight"),
        ({}, "blk.0.attn_sinks.weight", "attn_sinks"),
        ({"dflash.hidden_activation": ("gelu", TEXT)}, "", "gelu"),
        ({"dflash.attention.scale": (0.5, F32)}, "", "dflash.attention.scale"),
        ({"dflash.rope.scaling.factor": (4.0, F32)}, "", "rope.scaling.factor"),
    ],
)
def test_a_drafter_of_another_kind_is_not_taken_for_ours(
    tmp_path: Path, demo_files: Pair, keys: dict[str, Field], more: str, told: str
) -> None:
    """It would be computed without that, and guess badly without a word."""
    assert demo_files.draft
    extra = {more: np.ones((4096, 16), np.float32)} if more else {}
    draft = rewritten(demo_files.draft, tmp_path / "other.gguf", keys, extra)
    refused(UnsupportedModelError, demo_files.target, draft, "other.gguf", told)


def test_what_says_what_is_usual_is_ours(tmp_path: Path, demo_files: Pair) -> None:
    assert demo_files.draft
    usual: dict[str, Field] = {
        "dflash.hidden_activation": ("silu", TEXT),
        "dflash.embedding_scale": (1.0, F32),
        "dflash.rope.scaling.type": ("none", TEXT),
        "dflash.rope.scaling.factor": (4.0, F32),
    }
    load(demo_files.target, rewritten(demo_files.draft, tmp_path / "usual.gguf", usual))


def test_a_head_of_the_drafters_own_is_told(tmp_path: Path, demo_files: Pair) -> None:
    assert demo_files.draft
    target = NativePair(demo_files.target, n_ctx=256)
    shape = target.info.n_vocab, target.info.n_embd
    target.close()
    own = {name: np.ones(shape, np.float32) for name in ("output.weight", "token_embd.weight")}
    draft = rewritten(demo_files.draft, tmp_path / "own.gguf", {}, own)
    loaded = NativePair(demo_files.target, draft, n_ctx=256)
    told = loaded.info.repairs
    loaded.close()
    assert "of its own: the target's are used" in told


def test_layers_that_guess_tokens_are_none_of_the_targets(tmp_path: Path, demo_files: Pair) -> None:
    """Some files carry a layer behind the last one (MTP), which is not loaded: no drafter can read
    what goes into it, and the process ended where one did."""
    assert demo_files.draft
    reader = gguf.GGUFReader(demo_files.target)
    tensors = {t.name: np.array(t.data) for t in reader.tensors}
    n = max(int(name.split(".")[1]) for name in tensors if name.startswith("blk.")) + 1
    width = len(tensors["output_norm.weight"])
    last, mtp = f"blk.{n - 1}.", f"blk.{n}."
    more = {k.replace(last, mtp): v for k, v in tensors.items() if k.startswith(last)}
    more[f"{mtp}nextn.eh_proj.weight"] = np.zeros((width, 2 * width), np.float32)
    for norm in ("enorm", "hnorm", "shared_head_norm"):
        more[f"{mtp}nextn.{norm}.weight"] = np.ones(width, np.float32)
    recurrent = "qwen35.attention.recurrent_layers"
    keys: dict[str, Field] = {
        "qwen35.block_count": (n + 1, U32),
        "qwen35.nextn_predict_layers": (1, U32),
        recurrent: ([*reader.fields[recurrent].contents(), False], ARRAY),
    }
    target = rewritten(demo_files.target, tmp_path / "mtp.gguf", keys, more)
    load(target, demo_files.draft)
    draft = edited(demo_files.draft, tmp_path / "d.gguf", dflash__target_layers={0: n})
    refused(PairMismatchError, target, draft, f"layer {n}")
    keys["qwen35.nextn_predict_layers"] = (n + 1, U32)
    refused(ModelFileError, rewritten(target, tmp_path / "all.gguf", keys), None, "nextn_predict")


def test_a_path_with_spaces_and_other_scripts(tmp_path: Path, demo_files: Pair) -> None:
    folder = tmp_path / "Загрузки" / "模型 😊 with spaces"
    folder.mkdir(parents=True)
    target = Path(shutil.copy(demo_files.target, folder / "цель.gguf"))
    assert demo_files.draft
    draft = Path(shutil.copy(demo_files.draft, folder / "草稿.gguf"))
    load(target, draft)


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux alone")
def test_a_path_that_is_no_utf8(tmp_path: Path, demo_files: Pair) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    target = Path(shutil.copy(demo_files.target, folder / os.fsdecode(b"ziel\xff.gguf")))
    load(target)
    target.write_bytes(b"GGUF")
    with pytest.raises(ModelFileError) as caught:
        load(target)
    assert "ziel" in caught.value.message
    caught.value.message.encode()


def spoilt(source: Path, to: Path, found: bytes, put: bytes) -> Path:
    """A copy with one place of the chat template changed, its length kept."""
    content = source.read_bytes()
    assert content.count(found) == 1
    assert len(found) == len(put)
    to.write_bytes(content.replace(found, put))
    return to


@pytest.mark.parametrize(
    ("put", "words"),
    [
        (b"{%- mucro text(content) -%}", ("broken", "mucro")),
        (b"{%- macro t\xffxt(content) -%}", ("UTF-8", "tokenizer.chat_template")),
    ],
)
def test_a_broken_template_frees_the_pair(
    tmp_path: Path,
    demo_files: Pair,
    monkeypatch: pytest.MonkeyPatch,
    put: bytes,
    words: tuple[str, ...],
) -> None:
    loaded: list[NativePair] = []

    class Noted(NativePair):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            loaded.append(self)

    monkeypatch.setattr(pair, "NativePair", Noted)
    found = b"{%- macro text(content) -%}"
    target = spoilt(demo_files.target, tmp_path / "spoilt.gguf", found, put)
    with pytest.raises(TemplateError) as caught:
        LoadedPair(LoadParams(target, None, Backend.CPU, n_ctx=256))
    for word in ("spoilt.gguf", *words):
        assert word in caught.value.message
    (native,) = loaded
    with pytest.raises(OptionError, match="not loaded"):
        native.reset()


def test_a_template_that_is_known_to_go_is_compiled_behind_the_load(
    demo_files: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paths, "cache", lambda: tmp_path)
    compiled: list[str] = []

    class Noted(template.ChatTemplate):
        def __init__(self, source: str | None, owner: str, **texts: str) -> None:
            super().__init__(source, owner, **texts)
            compiled.append(owner)

    monkeypatch.setattr(template, "ChatTemplate", Noted)
    for _ in range(2):  # the first finds out that it goes
        loaded = LoadedPair(LoadParams(demo_files.target, None, Backend.CPU, n_ctx=256))
        assert compiled == [demo_files.target.name]
        loaded.get_ready()
        loaded.close()
    assert len(compiled) == 2


def test_memory_is_told_as_it_is_after_loading(
    demo_files: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = replace(devices()[0], memory_free=1)
    monkeypatch.setattr(pair, "devices", lambda: (before,))
    loaded = LoadedPair(LoadParams(demo_files.target, None, Backend.CPU, n_ctx=256))
    loaded.close()
    assert loaded.model.device.memory_free > 1


def test_a_gpu_that_is_not_there(demo_files: Pair) -> None:
    if any(d.kind == "gpu" and d.usable for d in devices()):
        LoadedPair(LoadParams(demo_files.target, None, Backend.GPU, n_ctx=256)).close()
        return
    with pytest.raises(DeviceError, match="GPU"):
        LoadedPair(LoadParams(demo_files.target, None, Backend.GPU, n_ctx=256))
    loaded = LoadedPair(LoadParams(demo_files.target, None, Backend.AUTO, n_ctx=256))
    assert loaded.model.backend == "cpu"
    assert loaded.model.fallback
    loaded.close()


@pytest.mark.parametrize(
    ("asked", "kept"), [(None, None), (Backend.CPU, "CPU"), (Backend.GPU, "GPU0")]
)
def test_a_place_asked_for_the_drafter_survives_a_gpu_that_is_too_small(
    monkeypatch: pytest.MonkeyPatch, asked: Backend | None, kept: str | None
) -> None:
    tried: list[tuple[str | None, str | None]] = []

    class Small:
        def __init__(self, *_: object, device: str | None, draft_device: str | None, **__: object):
            tried.append((device, draft_device))
            if device:
                raise DeviceError("Too small.", remedy="Use the CPU.")

    monkeypatch.setattr(pair, "NativePair", Small)
    monkeypatch.setattr(pair, "devices", lambda: (FAKE_CPU, FAKE_GPU))
    params = LoadParams(Path("target"), Path("draft"), Backend.AUTO, draft_backend=asked)
    _, fallback = pair._load(params, None)
    assert fallback == "Too small."
    assert tried == [("GPU0", kept), (None, kept)]


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A graphics card on which `n` of 32 layers fit; `loads` is where a pair was loaded, and
    `refused` how many of those had too few layers there."""
    found: dict[str, Any] = {"n": 32, "loads": [], "refused": 0}

    class Partly:
        def __init__(
            self, *_: object, device: str | None, least_share: float, **__: object
        ) -> None:
            found["loads"].append(device or "CPU")
            if device and found["n"] < least_share * 32:
                found["refused"] += 1
                raise OutOfMemoryError(f"Only {found['n']} fit.", remedy="Choose the CPU.")

    monkeypatch.setattr(pair, "NativePair", Partly)
    monkeypatch.setattr(pair, "devices", lambda: (FAKE_CPU, FAKE_GPU))
    monkeypatch.setattr(paths, "cache", lambda: tmp_path / "cache")
    target = tmp_path / "target"
    target.touch()
    found["params"] = LoadParams(target, None)
    return found


def measured(card: dict[str, Any], cpu: float, gpu: float, share: float = 1.0) -> None:
    """By plain steps before, in tokens/s."""
    model = key.models_key_of(card["params"])
    remember_speed(FAKE_CPU, model, cpu)
    remember_speed(FAKE_GPU, model, gpu, share)


@pytest.mark.parametrize(
    ("n", "loads"),
    [(32, ["GPU0"]), (8, ["GPU0"]), (7, ["GPU0", "CPU"]), (1, ["GPU0", "CPU"])],
)
def test_a_card_for_few_of_the_layers_is_no_default(
    card: dict[str, Any], n: int, loads: list[str]
) -> None:
    card["n"] = n
    _, why = pair._load(card["params"], None)
    assert card["loads"] == loads
    assert card["refused"] == len(loads) - 1
    assert why == (f"Only {n} fit." if n < 8 else "")


@pytest.mark.parametrize("asked", [{"backend": Backend.GPU}, {"device": "GPU0"}])
def test_who_asks_for_a_card_gets_it_for_one_layer(
    card: dict[str, Any], asked: dict[str, Any]
) -> None:
    card["n"] = 1
    assert pair._load(replace(card["params"], **asked), None)[1] == ""
    assert card["loads"] == ["GPU0"]


def test_what_was_measured_is_better_than_a_share(card: dict[str, Any]) -> None:
    card["n"] = 4
    measured(card, cpu=10.0, gpu=12.0, share=4 / 32)  # much faster than a share could make it
    assert pair._load(card["params"], None)[1] == ""
    card["n"] = 16
    measured(card, cpu=10.0, gpu=9.0, share=16 / 32)
    assert pair._load(card["params"], None)[1] == "Only 16 fit."
    measured(card, cpu=10.0, gpu=20.0)  # whole: a layer takes half of the time there
    measured(card, cpu=10.0, gpu=10.0 / 0.875, share=8 / 32)
    for card["n"], loads in ((6, ["GPU0"]), (5, ["GPU0", "CPU"])):  # 2 / 11 of the layers
        card["loads"].clear()
        pair._load(card["params"], None)
        assert card["loads"] == loads


@pytest.mark.parametrize(("gpu", "place"), [(9.5, "GPU0"), (8.0, "CPU")])
def test_a_card_that_was_measured_to_be_slower_is_no_default(
    card: dict[str, Any], gpu: float, place: str
) -> None:
    measured(card, cpu=10.0, gpu=gpu)
    _, why = pair._load(card["params"], None)
    assert card["loads"] == [place]  # of the two nothing is loaded in vain
    assert why == ("Scripted GPU was measured to be slower." if place == "CPU" else "")


def test_what_was_loaded_is_told(demo_files: Pair) -> None:
    loaded = LoadedPair(LoadParams(demo_files.target, demo_files.draft, Backend.CPU, n_ctx=512))
    model = loaded.model
    loaded.close()
    assert (model.block, model.n_ctx, model.layers) == (16, 512, 8)
    assert model.quantisation.lower().startswith("all f32")
    assert model.has_draft
    assert model.target_bytes > model.draft_bytes > 0
