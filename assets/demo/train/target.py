"""The demo target: transformers' Qwen3.5 text model in small, and its checkpoint on disk."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

from .tokenizer import VOCAB_SIZE

LAYERS = 8
CONFIG = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_output_gate": True,
    "dtype": "bfloat16",
    "eos_token_id": VOCAB_SIZE - 4,
    "full_attention_interval": 4,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 256,
    "initializer_range": 0.02,
    "intermediate_size": 768,
    "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * (LAYERS // 4),
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 64,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 64,
    "mamba_ssm_dtype": "float32",
    "max_position_embeddings": 32768,
    "mlp_only_layers": [],
    "model_type": "qwen3_5_text",
    "mtp_num_hidden_layers": 0,
    "mtp_use_dedicated_embeddings": False,
    "num_attention_heads": 4,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": 2,
    "pad_token_id": VOCAB_SIZE - 6,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {
        "mrope_interleaved": True,
        "mrope_section": [3, 3, 2],
        "partial_rotary_factor": 0.25,
        "rope_theta": 10_000_000,
        "rope_type": "default",
    },
    "tie_word_embeddings": True,
    "use_cache": True,
    "vocab_size": VOCAB_SIZE,
}
PREFIX = "model.language_model."


def create() -> Qwen3_5ForCausalLM:
    """An untrained target in float32."""
    config = Qwen3_5TextConfig(**{**CONFIG, "dtype": "float32"})
    return Qwen3_5ForCausalLM._from_config(config, attn_implementation="sdpa")


def load(folder: Path) -> Qwen3_5ForCausalLM:
    """The target of a checkpoint folder, in float32 and evaluation mode."""
    model = create()
    tensors = load_file(folder / "model.safetensors")
    state = {name.removeprefix(PREFIX): tensor.float() for name, tensor in tensors.items()}
    model.model.load_state_dict(state)
    model.tie_weights()
    return model.eval()


def save(model: Qwen3_5ForCausalLM, folder: Path) -> None:
    """Writes config.json, generation_config.json and model.safetensors (bf16)."""
    config = {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "text_config": CONFIG,
        "tie_word_embeddings": True,
    }
    generation = {
        "do_sample": True,
        "eos_token_id": [CONFIG["eos_token_id"], CONFIG["pad_token_id"]],
        "pad_token_id": CONFIG["pad_token_id"],
        "temperature": 0.6,
        "top_k": 20,
        "top_p": 0.95,
    }
    write_json(config, folder / "config.json")
    write_json(generation, folder / "generation_config.json")
    tensors = {PREFIX + name: tensor for name, tensor in model.model.state_dict().items()}
    write_bf16(tensors, folder / "model.safetensors")


def run(model: Qwen3_5ForCausalLM, ids: Tensor, taps: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """One pass over `ids` [B, S].

    Returns the final hidden states after the last norm [B, S, H], and the drafter's features
    [B, S, len(taps) * H]: the outputs of the decoder layers `taps`, side by side.
    """
    out = model.model(input_ids=ids, use_cache=False, output_hidden_states=True)
    features = torch.cat([out.hidden_states[layer + 1] for layer in taps], dim=-1)
    return out.last_hidden_state, features


@torch.no_grad()
def round_to_bf16(model: nn.Module) -> None:
    """Rounds the weights to what the checkpoint will hold; they stay float32 in memory."""
    for parameter in model.parameters():
        parameter.copy_(parameter.bfloat16())


def write_bf16(tensors: dict[str, Tensor], path: Path) -> None:
    """Writes tensors as bf16 safetensors."""
    rounded = {name: tensor.bfloat16().contiguous().cpu() for name, tensor in tensors.items()}
    save_file(rounded, path, metadata={"format": "pt"})


def write_json(value: object, path: Path) -> None:
    """Writes readable JSON with a final line end."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
