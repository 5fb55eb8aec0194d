"""Tiny random checkpoints in the layout of ``Qwen/Qwen3.5-4B`` and its DFlash drafter.

Written without torch, so that every tensor, shape and file name here is stated, not derived.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Tensors = dict[str, tuple[str, Array]]

QWEN35_REGEX = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GENERATION = {"do_sample": True, "eos_token_id": [264, 262]}  # nothing of this is in GGUF
MARKERS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<|vision_pad|>")
TEMPLATE = (
    "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
)


@dataclass(frozen=True)
class Target:
    """Everything that a test may want to vary about a target checkpoint."""

    layers: int = 4
    hidden: int = 64
    ff: int = 96
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    key_heads: int = 2
    value_heads: int = 6
    linear_dim: int = 16
    vocab: int = 320
    tied: bool = True
    dtype: str = "BF16"
    mtp: bool = False
    vision: bool = False
    causal_lm: bool = False  # a text-only folder: no `text_config`, no `language_model.`
    shards: int = 1
    seed: int = 0
    template: str = "jinja"  # jinja, config, none
    tokenizer_config: bool = True
    extra_config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Draft:
    """Everything that a test may want to vary about a drafter checkpoint."""

    layers: int = 3
    hidden: int = 64
    ff: int = 96
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    vocab: int = 320
    taps: tuple[int, ...] = (0, 1, 2)
    mask: int | None = 300
    block: int | None = 16
    sliding: int | None = 32  # window of all layers but the last; None: the March revision
    target_layers: int = 4
    dtype: str = "BF16"
    seed: int = 1
    extra_config: dict[str, Any] = field(default_factory=dict)


def byte_alphabet() -> list[str]:
    """The 256 printable stand-ins that byte-level BPE uses, in byte order."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return [chr(b) if b in keep else chr(next(spare)) for b in range(256)]


def tokenizer_json(regex: str = QWEN35_REGEX) -> dict[str, Any]:
    alphabet = byte_alphabet()
    merges = [["h", "e"], ["l", "l"], ["he", "ll"], ["hell", "o"], ["Ġ", "hello"], ["1", "2"]]
    words = alphabet + ["".join(pair) for pair in merges]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    byte_level["use_regex"] = False
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    added = [
        {
            "id": len(words) + i,
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": not text.endswith("think>"),
        }
        for i, text in enumerate(MARKERS)
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {word: i for i, word in enumerate(words)},
            "merges": merges,
        },
    }


def to_dtype(values: Array, dtype: str) -> tuple[str, Array]:
    if dtype == "BF16":
        bits = values.astype(np.float32).view(np.uint32)
        return dtype, ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return dtype, values.astype({"F32": np.float32, "F16": np.float16, "F64": np.float64}[dtype])


def safetensors_bytes(tensors: Tensors) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at, body = 0, []
    for name, (dtype, values) in tensors.items():
        raw = values.tobytes()
        span = [at, at + len(raw)]
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": span}
        at += len(raw)
        body.append(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(body)


def write_tensors(folder: Path, tensors: Tensors, shards: int) -> None:
    if shards == 1:
        (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors))
        return
    names = list(tensors)
    weight_map = {}
    for i in range(shards):
        part = names[i::shards]
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        (folder / file).write_bytes(safetensors_bytes({name: tensors[name] for name in part}))
        weight_map.update(dict.fromkeys(part, file))
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": weight_map})


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1), "utf-8")


def edit_json(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    value = json.loads(path.read_text("utf-8"))
    change(value)
    write_json(path, value)


def block_shapes(t: Target, prefix: str, full: bool) -> Iterable[tuple[str, tuple[int, ...]]]:
    yield prefix + "input_layernorm.weight", (t.hidden,)
    if full:
        yield prefix + "self_attn.q_proj.weight", (2 * t.heads * t.head_dim, t.hidden)
        yield prefix + "self_attn.k_proj.weight", (t.kv_heads * t.head_dim, t.hidden)
        yield prefix + "self_attn.v_proj.weight", (t.kv_heads * t.head_dim, t.hidden)
        yield prefix + "self_attn.o_proj.weight", (t.hidden, t.heads * t.head_dim)
        yield prefix + "self_attn.q_norm.weight", (t.head_dim,)
        yield prefix + "self_attn.k_norm.weight", (t.head_dim,)
    else:
        keys, values = t.key_heads * t.linear_dim, t.value_heads * t.linear_dim
        linear = prefix + "linear_attn."
        yield linear + "A_log", (t.value_heads,)
        yield linear + "dt_bias", (t.value_heads,)
        yield linear + "conv1d.weight", (2 * keys + values, 1, 4)
        yield linear + "in_proj_qkv.weight", (2 * keys + values, t.hidden)
        yield linear + "in_proj_z.weight", (values, t.hidden)
        yield linear + "in_proj_a.weight", (t.value_heads, t.hidden)
        yield linear + "in_proj_b.weight", (t.value_heads, t.hidden)
        yield linear + "norm.weight", (t.linear_dim,)
        yield linear + "out_proj.weight", (t.hidden, values)
    yield prefix + "post_attention_layernorm.weight", (t.hidden,)
    yield prefix + "mlp.gate_proj.weight", (t.ff, t.hidden)
    yield prefix + "mlp.up_proj.weight", (t.ff, t.hidden)
    yield prefix + "mlp.down_proj.weight", (t.hidden, t.ff)


def target_shapes(t: Target) -> Iterable[tuple[str, tuple[int, ...]]]:
    root = "model." if t.causal_lm else "model.language_model."
    yield root + "embed_tokens.weight", (t.vocab, t.hidden)
    for i in range(t.layers):
        yield from block_shapes(t, f"{root}layers.{i}.", full=i % 4 == 3)
    yield root + "norm.weight", (t.hidden,)
    if not t.tied:
        yield "lm_head.weight", (t.vocab, t.hidden)
    if t.vision:
        yield "model.visual.patch_embed.proj.weight", (8, 3, 2, 4, 4)
        yield "model.visual.blocks.0.attn.qkv.weight", (24, 8)
        yield "model.visual.merger.norm.weight", (8,)
    if t.mtp:
        yield "mtp.fc.weight", (t.hidden, 2 * t.hidden)
        yield from block_shapes(t, "mtp.layers.0.", full=True)
        yield "mtp.norm.weight", (t.hidden,)
        yield "mtp.pre_fc_norm_embedding.weight", (t.hidden,)
        yield "mtp.pre_fc_norm_hidden.weight", (t.hidden,)


def target_config(t: Target) -> dict[str, Any]:
    text: dict[str, Any] = {
        "model_type": "qwen3_5_text",
        "attention_bias": False,
        "attn_output_gate": True,
        "eos_token_id": 264,
        "full_attention_interval": 4,
        "head_dim": t.head_dim,
        "hidden_act": "silu",
        "hidden_size": t.hidden,
        "intermediate_size": t.ff,
        "layer_types": [
            "full_attention" if i % 4 == 3 else "linear_attention" for i in range(t.layers)
        ],
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": t.linear_dim,
        "linear_num_key_heads": t.key_heads,
        "linear_num_value_heads": t.value_heads,
        "linear_value_head_dim": t.linear_dim,
        "max_position_embeddings": 4096,
        "mtp_num_hidden_layers": int(t.mtp),
        "num_attention_heads": t.heads,
        "num_hidden_layers": t.layers,
        "num_key_value_heads": t.kv_heads,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": t.tied,
        "vocab_size": t.vocab,
        "rope_parameters": {
            "mrope_interleaved": True,
            "mrope_section": [2, 1, 1],
            "rope_type": "default",
            "rope_theta": 10000000,
            "partial_rotary_factor": 0.25,
        },
    }
    text.update(t.extra_config)
    if t.causal_lm:
        return {"architectures": ["Qwen3_5ForCausalLM"], "dtype": "bfloat16"} | text
    return {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "image_token_id": 270,
        "text_config": text,
        "tie_word_embeddings": t.tied,
        "vision_config": {"model_type": "qwen3_5_vision", "depth": 1, "hidden_size": 8},
    }


def write_tokenizer(folder: Path, t: Target) -> None:
    write_json(folder / "tokenizer.json", tokenizer_json())
    config: dict[str, Any] = {
        "tokenizer_class": "Qwen2Tokenizer",
        "add_bos_token": False,
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
        "model_max_length": 4096,
    }
    if t.template == "jinja":
        (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    elif t.template == "config":
        config["chat_template"] = TEMPLATE
    if t.tokenizer_config:
        write_json(folder / "tokenizer_config.json", config)


def random_tensors(shapes: Iterable[tuple[str, tuple[int, ...]]], dtype: str, seed: int) -> Tensors:
    rng = np.random.default_rng(seed)

    def values(shape: tuple[int, ...]) -> Array:
        # Large ones repeat, which is quicker; a prime period keeps their rows different.
        return np.resize(rng.normal(0, 0.6, min(math.prod(shape), 65_521)), shape)

    return {name: to_dtype(values(shape), dtype) for name, shape in shapes}


def write_target(folder: Path, t: Target | None = None, **changes: Any) -> Path:
    t = replace(t or Target(), **changes)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", target_config(t))
    write_json(
        folder / "generation_config.json",
        {"temperature": 0.7, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1, **GENERATION},
    )
    write_tokenizer(folder, t)
    write_tensors(folder, random_tensors(target_shapes(t), t.dtype, t.seed), t.shards)
    return folder


def draft_shapes(d: Draft) -> Iterable[tuple[str, tuple[int, ...]]]:
    yield "fc.weight", (d.hidden, len(d.taps) * d.hidden)
    yield "hidden_norm.weight", (d.hidden,)
    for i in range(d.layers):
        layer = f"layers.{i}."
        yield layer + "input_layernorm.weight", (d.hidden,)
        yield layer + "self_attn.q_proj.weight", (d.heads * d.head_dim, d.hidden)
        yield layer + "self_attn.k_proj.weight", (d.kv_heads * d.head_dim, d.hidden)
        yield layer + "self_attn.v_proj.weight", (d.kv_heads * d.head_dim, d.hidden)
        yield layer + "self_attn.o_proj.weight", (d.hidden, d.heads * d.head_dim)
        yield layer + "self_attn.q_norm.weight", (d.head_dim,)
        yield layer + "self_attn.k_norm.weight", (d.head_dim,)
        yield layer + "post_attention_layernorm.weight", (d.hidden,)
        yield layer + "mlp.gate_proj.weight", (d.ff, d.hidden)
        yield layer + "mlp.up_proj.weight", (d.ff, d.hidden)
        yield layer + "mlp.down_proj.weight", (d.hidden, d.ff)
    yield "norm.weight", (d.hidden,)


def draft_config(d: Draft) -> dict[str, Any]:
    sliding = d.sliding is not None
    config: dict[str, Any] = {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "attention_bias": False,
        "auto_map": {"AutoModel": "dflash.DFlashDraftModel"},
        "dflash_config": {"target_layer_ids": list(d.taps)},
        "head_dim": d.head_dim,
        "hidden_act": "silu",
        "hidden_size": d.hidden,
        "intermediate_size": d.ff,
        "layer_types": [
            "sliding_attention" if sliding and i < d.layers - 1 else "full_attention"
            for i in range(d.layers)
        ],
        "max_position_embeddings": 4096,
        "max_window_layers": d.layers,
        "num_attention_heads": d.heads,
        "num_hidden_layers": d.layers,
        "num_key_value_heads": d.kv_heads,
        "num_target_layers": d.target_layers,
        "rms_norm_eps": 1e-6,
        "rope_scaling": None,
        "rope_theta": 10000000,
        "sliding_window": d.sliding,
        "tie_word_embeddings": True,
        "use_sliding_window": sliding,
        "vocab_size": d.vocab,
    }
    if d.block is not None:
        config["block_size"] = d.block
    if d.mask is not None:
        config["dflash_config"]["mask_token_id"] = d.mask
    return config | d.extra_config


def write_draft(folder: Path, d: Draft | None = None, **changes: Any) -> Path:
    d = replace(d or Draft(), **changes)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", draft_config(d))
    write_tensors(folder, random_tensors(draft_shapes(d), d.dtype, d.seed), 1)
    return folder
