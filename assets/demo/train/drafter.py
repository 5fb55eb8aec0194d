"""The DFlash drafter (arXiv 2602.06036), the reference for what the engine computes.

Conventions, the same as in z-lab's checkpoints:

- The feature of layer id i is the output of the target's decoder layer i (0-based). The features of
  one position are the chosen layers side by side; `fc` and `hidden_norm` fuse them into one row.
- A block is [anchor, mask, mask, ...]. The anchor is the last settled token; the target has not
  read it yet. The hidden state at block place j gives the token at block place j (j >= 1).
- Keys and values of a layer come from the fused context (all positions before the anchor) and from
  the block itself. The block sees itself in both directions.
- A sliding layer sees keys less than `sliding_window` positions back.
- Positions are absolute, rotary embedding covers the whole head (NeoX halves).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from . import target


@dataclass(frozen=True)
class DrafterConfig:
    """Sizes of a drafter; the defaults are the demo's."""

    vocab_size: int = target.VOCAB_SIZE
    hidden_size: int = 256
    intermediate_size: int = 768
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    layer_types: tuple[str, ...] = ("sliding_attention", "sliding_attention", "full_attention")
    sliding_window: int = 128
    target_layer_ids: tuple[int, ...] = (1, 3, 5, 6)
    block_size: int = 16
    mask_token_id: int = target.VOCAB_SIZE - 1
    num_target_layers: int = target.LAYERS
    max_position_embeddings: int = 32768
    rope_theta: float = 10_000_000.0
    rms_norm_eps: float = 1e-6

    def to_json(self) -> dict[str, object]:
        """config.json in the form of z-lab's drafters."""
        return {
            "architectures": ["DFlashDraftModel"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "block_size": self.block_size,
            "dflash_config": {
                "mask_token_id": self.mask_token_id,
                "target_layer_ids": list(self.target_layer_ids),
            },
            "dtype": "bfloat16",
            "eos_token_id": target.CONFIG["eos_token_id"],
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "hidden_size": self.hidden_size,
            "initializer_range": 0.02,
            "intermediate_size": self.intermediate_size,
            "is_causal": False,
            "layer_types": list(self.layer_types),
            "max_position_embeddings": self.max_position_embeddings,
            "max_window_layers": len(self.layer_types),
            "model_type": "qwen3",
            "num_attention_heads": self.num_attention_heads,
            "num_hidden_layers": len(self.layer_types),
            "num_key_value_heads": self.num_key_value_heads,
            "num_target_layers": self.num_target_layers,
            "pad_token_id": target.CONFIG["pad_token_id"],
            "rms_norm_eps": self.rms_norm_eps,
            "rope_scaling": None,
            "rope_theta": self.rope_theta,
            "sliding_window": self.sliding_window,
            "tie_word_embeddings": False,
            "use_cache": True,
            "use_sliding_window": True,
            "vocab_size": self.vocab_size,
        }

    @classmethod
    def from_json(cls, data: dict[str, object]) -> DrafterConfig:
        """The inverse of `to_json`."""
        flat = {**data, **data["dflash_config"]}  # type: ignore[dict-item]
        known = {key: flat[key] for key in cls.__dataclass_fields__}
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in known.items()})


@dataclass(frozen=True)
class Blocks:
    """Where the blocks of a batch lie and what they may see: A blocks of L tokens, S context rows.

    positions [B, A * L] int64; full and sliding [B, 1, A * L, S + A * L] bool, true = visible.
    """

    positions: Tensor
    full: Tensor
    sliding: Tensor


def place_blocks(anchors: Tensor, context: int, length: int, window: int) -> Blocks:
    """Blocks of `length` tokens at `anchors` [B, A] over `context` rows of features."""
    batch, count = anchors.shape
    device = anchors.device
    positions = (anchors[..., None] + torch.arange(length, device=device)).flatten(1)
    anchor = anchors.repeat_interleave(length, dim=1)[..., None]
    row = torch.arange(context, device=device)
    before = row < anchor
    near = before & (positions[..., None] - row < window)
    block = torch.arange(count, device=device).repeat_interleave(length)
    own = (block[:, None] == block).expand(batch, -1, -1)
    close = own & (positions[..., None] - positions[:, None] < window)
    full, sliding = torch.cat((before, own), 2), torch.cat((near, close), 2)
    return Blocks(positions, full[:, None], sliding[:, None])


class RMSNorm(nn.Module):
    """Root mean square norm over the last dimension, with a plain weight."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """[..., size] -> [..., size]."""
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class Attention(nn.Module):
    """Queries from the block; keys and values from the fused context and the block."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        queries = config.num_attention_heads * config.head_dim
        keys = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, queries, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, keys, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, keys, bias=False)
        self.o_proj = nn.Linear(queries, config.hidden_size, bias=False)
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps)
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps)

    def forward(
        self, x: Tensor, source: Tensor, turn_q: Tensor, turn_k: Tensor, mask: Tensor
    ) -> Tensor:
        """x [B, Q, H], source [B, K, H] -> [B, Q, H]; turns as in `rotate`."""
        q = rotate(self.q_norm(self._heads(self.q_proj(x))), turn_q)
        k = rotate(self.k_norm(self._heads(self.k_proj(source))), turn_k)
        v = self._heads(self.v_proj(source))
        groups = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


class MLP(nn.Module):
    """SiLU-gated feed-forward network."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[..., H] -> [..., H]."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """One drafter layer: attention over context and block, then the feed-forward network."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(
        self, x: Tensor, context: Tensor, turn_q: Tensor, turn_k: Tensor, mask: Tensor
    ) -> Tensor:
        """x [B, Q, H], context [B, S, H] -> [B, Q, H]."""
        normed = self.input_layernorm(x)
        source = torch.cat((context, normed), dim=1)
        x = x + self.self_attn(normed, source, turn_q, turn_k, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Drafter(nn.Module):
    """Maps block embeddings and target features to hidden states for the target's output head."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.config = config
        taps = len(config.target_layer_ids)
        self.fc = nn.Linear(taps * config.hidden_size, config.hidden_size, bias=False)
        self.hidden_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.layers = nn.ModuleList(Layer(config) for _ in config.layer_types)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def fuse(self, features: Tensor) -> Tensor:
        """Features [B, S, taps * H] -> context [B, S, H]."""
        return self.hidden_norm(self.fc(features))

    def forward(self, embeds: Tensor, context: Tensor, blocks: Blocks) -> Tensor:
        """Block embeddings [B, Q, H] and fused context [B, S, H] -> hidden states [B, Q, H]."""
        rows = torch.arange(context.shape[1], device=context.device).expand(context.shape[0], -1)
        turn_q = self._turns(blocks.positions)
        turn_k = torch.cat((self._turns(rows), turn_q), dim=2)
        x = embeds
        for layer, kind in zip(self.layers, self.config.layer_types, strict=True):
            mask = blocks.sliding if kind == "sliding_attention" else blocks.full
            x = layer(x, context, turn_q, turn_k, mask)
        return self.norm(x)

    def _turns(self, positions: Tensor) -> Tensor:
        half = self.config.head_dim // 2
        power = torch.arange(half, device=positions.device, dtype=torch.float32) / half
        angles = positions[..., None].float() * self.config.rope_theta**-power
        return torch.polar(torch.ones_like(angles), angles)[:, None]


def rotate(x: Tensor, turn: Tensor) -> Tensor:
    """Rotary embedding of [B, heads, N, D] by unit complex numbers [B, 1, N, D / 2]."""
    low, high = x.chunk(2, dim=-1)
    return torch.cat(
        (low * turn.real - high * turn.imag, high * turn.real + low * turn.imag), dim=-1
    )


def embed_blocks(embedding: Tensor, anchor_ids: Tensor, config: DrafterConfig) -> Tensor:
    """Embeddings of [anchor, mask, ...]: table [V, H], anchor ids [B, A] -> [B, A * block, H]."""
    ids = anchor_ids.new_full((*anchor_ids.shape, config.block_size), config.mask_token_id)
    ids[..., 0] = anchor_ids
    return F.embedding(ids.flatten(1), embedding)


@torch.no_grad()
def draft_hidden(drafter: Drafter, embedding: Tensor, block: Tensor, features: Tensor) -> Tensor:
    """The engine's draft pass for one sequence.

    `embedding` [V, H] is the target's table, `block` [L] the ids anchor, mask, ...; `features`
    [S, taps * H] those of all S positions before the anchor, which so has position S.
    Returns the normed hidden states [L, H]; times the target's output head they are the logits.
    """
    anchors = torch.tensor([[features.shape[0]]], device=features.device)
    blocks = place_blocks(anchors, len(features), len(block), drafter.config.sliding_window)
    hidden: Tensor = drafter(
        F.embedding(block, embedding)[None], drafter.fuse(features[None]), blocks
    )
    return hidden[0]


def load(folder: Path) -> Drafter:
    """The drafter of a checkpoint folder, in float32 and evaluation mode."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = Drafter(DrafterConfig.from_json(config))
    tensors = load_file(folder / "model.safetensors")
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return model.eval()


def save(model: Drafter, folder: Path) -> None:
    """Writes config.json and model.safetensors (bf16)."""
    target.write_json(model.config.to_json(), folder / "config.json")
    target.write_bf16(model.state_dict(), folder / "model.safetensors")
