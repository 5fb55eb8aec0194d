"""The target's pass over rows in which several chats stand behind each other, for training.

transformers' pass holds one chat in a row, so that most of a batch is padding, and computes in
eager float32. Here no chat sees another: its first token clears the delta net's state, the
convolution stops at it, and attention is masked. Products are in bfloat16 on a card; a layer is
compiled once and serves for all of its kind.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import Qwen3_5ForCausalLM

from .target import CONFIG

CHUNK = 64  # tokens that the delta rule takes together
HEAD = CONFIG["linear_key_head_dim"]
KEYS = HEAD * CONFIG["linear_num_key_heads"]
SHARED = CONFIG["linear_num_value_heads"] // CONFIG["linear_num_key_heads"]
GROUPS = CONFIG["num_attention_heads"] // CONFIG["num_key_value_heads"]
EPS = CONFIG["rms_norm_eps"]
CLEARED = -60.0  # log of what is left of a state behind the end of a chat


class Rows(NamedTuple):
    """Packed chats: token ids, their place in their own chat, and the weight of each in the loss.

    All are [B, S] with S a multiple of `CHUNK`; ids and places int64, weights float32.
    """

    ids: Tensor
    places: Tensor
    weights: Tensor


Weights = dict[str, Tensor]


def norm(x: Tensor, weight: Tensor) -> Tensor:
    """RMS norm over the last dimension; `weight` is what is added to one."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * (1 + weight)


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x [..., I] times weight [O, I], in bfloat16 on a card, as float32."""
    kind = torch.bfloat16 if x.is_cuda else torch.float32
    return F.linear(x.to(kind), weight.to(kind)).float()


def inverse(lower: Tensor) -> Tensor:
    """Of one plus a strictly lower matrix [..., N, N], N eight times a power of two."""
    size = lower.shape[-1]
    if size == 8:  # the eighth power is none; of larger ones the powers would grow too far
        square = lower @ lower
        found = torch.eye(size, device=lower.device) - lower
        found = found + found @ square
        return found + found @ (square @ square)
    half = size // 2
    corners = torch.stack((lower[..., :half, :half], lower[..., half:, half:]))
    first, second = inverse(corners).unbind()
    below = -second @ lower[..., half:, :half] @ first
    above = torch.cat((first, torch.zeros_like(first)), dim=-1)
    return torch.cat((above, torch.cat((below, second), dim=-1)), dim=-2)


def delta_rule(q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor) -> Tensor:
    """The gated delta rule from an empty state, in chunks.

    q, k, v [B, heads, S, D] with q and k normed and q scaled; decay (a logarithm) and beta
    [B, heads, S]. Returns [B, heads, S, D].
    """
    q, k, v = (x.unflatten(2, (-1, CHUNK)) for x in (q, k, v))
    decay, beta = (x.unflatten(2, (-1, CHUNK)) for x in (decay, beta))
    total = decay.cumsum(-1)
    between = (total[..., None] - total[..., None, :]).tril().exp().tril()
    turned = k.transpose(-1, -2)
    lower = ((k * beta[..., None]) @ turned * between).tril(-1)
    # One step of Newton's method sharpens the inverse and is all of its derivative.
    near = inverse(lower.detach())
    solved = near - near @ ((near - torch.eye(CHUNK, device=near.device)) + lower @ near)
    new = solved @ (v * beta[..., None])
    read = solved @ (k * (beta * total.exp())[..., None])
    own = q @ turned * between
    q = q * total.exp()[..., None]
    k = (k * (total[..., -1:] - total).exp()[..., None]).transpose(-1, -2)
    kept = total[..., -1].exp()[..., None, None]
    state = torch.zeros_like(k[:, :, 0] @ v[:, :, 0])
    found = []
    for at in range(q.shape[2]):
        wrote = new[:, :, at] - read[:, :, at] @ state
        found.append(q[:, :, at] @ state + own[:, :, at] @ wrote)
        state = state * kept[:, :, at] + k[:, :, at] @ wrote
    return torch.stack(found, dim=2).flatten(2, 3)


def feed_forward(x: Tensor, w: Weights) -> Tensor:
    """The second half of a layer."""
    h = norm(x, w["post_attention_layernorm.weight"])
    gate = F.silu(product(h, w["mlp.gate_proj.weight"]))
    return x + product(gate * product(h, w["mlp.up_proj.weight"]), w["mlp.down_proj.weight"])


def delta_layer(x: Tensor, places: Tensor, w: Weights) -> Tensor:
    """A layer with a gated delta net: [B, S, H] -> [B, S, H]."""
    h = norm(x, w["input_layernorm.weight"])
    mixed = product(h, w["linear_attn.in_proj_qkv.weight"])
    taps = w["linear_attn.conv1d.weight"][:, 0]
    reach = taps.shape[-1]
    through = mixed * taps[:, -1]
    for back in range(1, reach):
        moved = F.pad(mixed, (0, 0, back, 0))[:, : mixed.shape[1]]
        through = through + moved * taps[:, reach - 1 - back] * (places >= back)[..., None]
    q, k, v = F.silu(through).split((KEYS, KEYS, mixed.shape[-1] - 2 * KEYS), dim=-1)
    q, k, v = (part.unflatten(-1, (-1, HEAD)).transpose(1, 2) for part in (q, k, v))
    q, k = (part * torch.rsqrt(part.square().sum(-1, keepdim=True) + 1e-6) for part in (q, k))
    q, k = ((q * HEAD**-0.5).repeat_interleave(SHARED, 1), k.repeat_interleave(SHARED, 1))
    beta = product(h, w["linear_attn.in_proj_b.weight"]).sigmoid().transpose(1, 2)
    step = F.softplus(product(h, w["linear_attn.in_proj_a.weight"]) + w["linear_attn.dt_bias"])
    decay = (-w["linear_attn.A_log"].exp() * step).masked_fill((places == 0)[..., None], CLEARED)
    core = delta_rule(q, k, v, decay.transpose(1, 2), beta).transpose(1, 2)
    core = core * torch.rsqrt(core.square().mean(-1, keepdim=True) + EPS)
    gate = F.silu(product(h, w["linear_attn.in_proj_z.weight"]).unflatten(-1, (-1, HEAD)))
    core = (core * w["linear_attn.norm.weight"] * gate).flatten(-2)
    return feed_forward(x + product(core, w["linear_attn.out_proj.weight"]), w)


def attention_layer(x: Tensor, places: Tensor, turn: Tensor, w: Weights) -> Tensor:
    """A layer with full attention within each chat; `turn` [S, R / 2] complex, in parts [2, ...]."""
    h = norm(x, w["input_layernorm.weight"])
    heads = CONFIG["head_dim"]
    q, gate = product(h, w["self_attn.q_proj.weight"]).unflatten(-1, (-1, 2 * heads)).chunk(2, -1)
    k = product(h, w["self_attn.k_proj.weight"]).unflatten(-1, (-1, heads))
    v = product(h, w["self_attn.v_proj.weight"]).unflatten(-1, (-1, heads)).transpose(1, 2)
    q = rotate(norm(q, w["self_attn.q_norm.weight"]).transpose(1, 2), turn)
    k = rotate(norm(k, w["self_attn.k_norm.weight"]).transpose(1, 2), turn)
    k, v = (part.repeat_interleave(GROUPS, dim=1) for part in (k, v))
    chat = (places == 0).cumsum(-1)
    seen = (chat[:, None, :, None] == chat[:, None, None, :]).tril()
    kind = torch.bfloat16 if x.is_cuda else torch.float32
    q, k, v = (part.to(kind) for part in (q, k, v))
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen).float().transpose(1, 2)
    mixed = (mixed * gate.sigmoid()).flatten(-2)
    return feed_forward(x + product(mixed, w["self_attn.o_proj.weight"]), w)


def rotate(x: Tensor, turn: Tensor) -> Tensor:
    """Turns the first dimensions of [B, heads, S, D]; turn [2, S, R / 2] is cosine and sine."""
    cos, sin = turn.unbind()
    half = cos.shape[-1]
    low, high, rest = x.split((half, half, x.shape[-1] - 2 * half), dim=-1)
    return torch.cat((low * cos - high * sin, high * cos + low * sin, rest), dim=-1)


def entropy(x: Tensor, ids: Tensor, weights: Tensor, last: Tensor, table: Tensor) -> Tensor:
    """The mean cross-entropy of the next token, by weight; x [B, S, H] behind the last layer."""
    logits = product(norm(x, last)[:, :-1], table)
    losses = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    return (losses * weights[:, 1:].flatten()).sum() / weights.sum()


class Packed:
    """The loss of a target over packed rows; `compiled` for a card."""

    def __init__(self, model: Qwen3_5ForCausalLM, compiled: bool) -> None:
        self.model = model
        self.layers = [dict(layer.named_parameters()) for layer in model.model.layers]
        self.steps = delta_layer, attention_layer, entropy
        if compiled:
            self.steps = tuple(torch.compile(step, dynamic=False) for step in self.steps)

    def hidden(self, ids: Tensor, places: Tensor) -> Tensor:
        """Behind the last layer, before its norm: [B, S, H]."""
        delta, attention, _ = self.steps
        base = self.model.model
        angles = torch.arange(ids.shape[1], device=ids.device)[:, None] * base.rotary_emb.inv_freq
        turn = torch.stack((angles.cos(), angles.sin()))
        x = base.embed_tokens(ids)
        for weights, kind in zip(self.layers, CONFIG["layer_types"], strict=True):
            if kind == "linear_attention":
                x = delta(x, places, weights)
            else:
                x = attention(x, places, turn, weights)
        return x

    def loss(self, rows: Rows) -> Tensor:
        """What training makes small."""
        base = self.model.model
        x = self.hidden(rows.ids, rows.places)
        return self.steps[2](x, rows.ids, rows.weights, base.norm.weight, base.embed_tokens.weight)
