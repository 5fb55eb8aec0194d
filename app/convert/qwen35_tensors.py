"""The tensors of Qwen3.5's text part, their names in GGUF and what changes on the way."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.convert.checkpoint import Checkpoint
from app.convert.outline import Expected, Step
from app.convert.qwen35 import LINEAR, Qwen35
from app.convert.shard import StoredTensor
from app.convert.weights import Array, Shape
from app.errors import CheckpointError

_log = logging.getLogger(__name__)

_EMBEDDING: Final = "model.embed_tokens.weight"
_HEAD: Final = "lm_head.weight"


def one_more(weight: Array) -> Array:
    """Qwen3.5 multiplies by 1 + weight in its norms, ggml by the weight alone."""
    more: Array = weight + weight.dtype.type(1)
    return more


def decay(a_log: Array) -> Array:
    """-exp(A_log), correctly rounded.

    Taken in double precision, because float32 exponentials differ between libraries (and
    between processors within MKL, which torch uses) in the last bit of one value in 100.
    """
    return (-np.exp(a_log.astype(np.float64))).astype(a_log.dtype)


def drop_ones(tensor: Array) -> Array:
    """The convolution's [channels, 1, width] as [channels, width]."""
    return tensor.reshape(tensor.shape[0], tensor.shape[-1])


def expected_tensors(model: Qwen35) -> Iterator[Expected]:
    """Every tensor that a text part of these settings consists of."""
    table = (model.vocab, model.hidden)
    yield Expected(_EMBEDDING, "token_embd.weight", table)
    yield Expected("model.norm.weight", "output_norm.weight", (model.hidden,), compute=one_more)
    yield Expected(
        _HEAD,
        "output.weight",
        table,
        optional=model.tied,
        if_missing="`config.json` is wrong if the model answers with its embeddings: set "
        "`tie_word_embeddings` to true there. Otherwise the weights are not complete.",
    )
    for i, kind in enumerate(model.layer_types):
        block = _Block(f"model.layers.{i}.", f"blk.{i}.")
        yield from _around(model, block)
        yield from _linear(model, block) if kind == LINEAR else _full(model, block)


def _around(model: Qwen35, block: _Block) -> Iterator[Expected]:
    wide = (model.intermediate, model.hidden)
    yield block.norm("input_layernorm", "attn_norm", model.hidden)
    yield block.norm("post_attention_layernorm", "post_attention_norm", model.hidden)
    yield block.matrix("mlp.gate_proj", "ffn_gate", wide)
    yield block.matrix("mlp.up_proj", "ffn_up", wide)
    yield block.matrix("mlp.down_proj", "ffn_down", wide[::-1])


def _full(model: Qwen35, block: _Block) -> Iterator[Expected]:
    queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    # A query's output gate lies beside it, head by head: twice the rows.
    yield block.matrix("self_attn.q_proj", "attn_q", (2 * queries, model.hidden))
    yield block.matrix("self_attn.k_proj", "attn_k", (keys, model.hidden))
    yield block.matrix("self_attn.v_proj", "attn_v", (keys, model.hidden))
    yield block.matrix("self_attn.o_proj", "attn_output", (model.hidden, queries))
    yield block.norm("self_attn.q_norm", "attn_q_norm", model.head_dim)
    yield block.norm("self_attn.k_norm", "attn_k_norm", model.head_dim)


def _linear(model: Qwen35, block: _Block) -> Iterator[Expected]:
    heads, hidden = model.linear_heads, model.hidden
    values = heads.values * heads.width
    mixed = 2 * heads.keys * heads.width + values
    scalars = (heads.values,)
    yield block.matrix("linear_attn.in_proj_qkv", "attn_qkv", (mixed, hidden), heads.tail)
    yield block.matrix("linear_attn.in_proj_z", "attn_gate", (values, hidden), heads.rows)
    for source, name in (("in_proj_a", "ssm_alpha"), ("in_proj_b", "ssm_beta")):
        yield block.matrix(f"linear_attn.{source}", name, (heads.values, hidden), heads.scalars)
    yield block.matrix("linear_attn.out_proj", "ssm_out", (hidden, values), heads.columns)
    yield block.matrix("linear_attn.norm", "ssm_norm", (heads.width,))
    yield block.raw("linear_attn.A_log", "ssm_a", scalars, heads.scalars, decay)
    yield block.raw("linear_attn.dt_bias", "ssm_dt.bias", scalars, heads.scalars)
    yield Expected(
        block.source + "linear_attn.conv1d.weight",
        block.name + "ssm_conv1d.weight",
        (mixed, 1, model.conv),
        arrange=lambda tensor: heads.tail(drop_ones(tensor)),
        stored_shape=(mixed, model.conv),
    )


@dataclass(frozen=True, slots=True)
class _Block:
    """The two prefixes of one layer."""

    source: str
    name: str

    def raw(
        self,
        source: str,
        name: str,
        shape: Shape,
        arrange: Step | None = None,
        compute: Step | None = None,
    ) -> Expected:
        return Expected(self.source + source, self.name + name, shape, arrange, compute)

    def matrix(self, source: str, name: str, shape: Shape, arrange: Step | None = None) -> Expected:
        return self.raw(f"{source}.weight", f"{name}.weight", shape, arrange)

    def norm(self, source: str, name: str, width: int) -> Expected:
        return self.raw(f"{source}.weight", f"{name}.weight", (width,), compute=one_more)


def text_part(checkpoint: Checkpoint, *, tied: bool) -> dict[str, StoredTensor]:
    """The tensors under the names of a text-only checkpoint.

    The vision tower and multi-token prediction are left out; both may be absent. So is an
    output head that is `tied` to the embeddings and equals them, which some tools store all
    the same. Raises `CheckpointError` if two tensors come to the same name.
    """
    text: dict[str, StoredTensor] = {}
    vision = mtp = 0
    for name, tensor in checkpoint.tensors.items():
        plain = name.replace("language_model.", "", 1)
        if plain.startswith(("model.visual.", "visual.")):
            vision += 1
        elif plain.startswith(("mtp.", "model.mtp.")):
            mtp += 1
        elif plain in text:
            raise CheckpointError(
                f"`{checkpoint.folder}` holds the tensor `{plain}` twice: "
                f"as `{text[plain].name}` and as `{name}`.",
                remedy="Choose the original model: this one was put together wrongly.",
            )
        else:
            text[plain] = tensor
    if vision:
        _log.info("Skipping %d vision tensors of `%s`.", vision, checkpoint.folder)
    if mtp:
        _log.info("Skipping %d multi-token-prediction tensors of `%s`.", mtp, checkpoint.folder)
    if tied and _HEAD in text and _EMBEDDING in text:
        if text[_HEAD].same_numbers(text[_EMBEDDING]):
            _log.info("Skipping `%s` of `%s`: it is `%s`.", _HEAD, checkpoint.folder, _EMBEDDING)
            del text[_HEAD]
        else:
            # transformers 5 does not tie them either.
            _log.warning(
                "`%s` of `%s` is not `%s`, though `tie_word_embeddings` says so: it is kept.",
                _HEAD,
                checkpoint.folder,
                _EMBEDDING,
            )
    return text
