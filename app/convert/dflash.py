"""The DFlash drafter of z-lab: its settings, its tensors, and their names in GGUF.

Two revisions of the drafter for Qwen3.5-4B are known: that of March with full attention in all
layers, and one whose layers but the last see a sliding window. Nothing here is assumed of
either: every setting is read, and a missing one is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gguf import GGUFWriter

from app.convert.json_file import JsonFile
from app.convert.outline import Expected
from app.convert.qwen35 import MOST_LAYERS, MOST_TOKENS, Qwen35
from app.convert.rope import rope_of
from app.errors import PairMismatchError, UnsupportedModelError

ARCH: Final = "dflash"
ARCHITECTURES: Final = ("DFlashDraftModel",)

_SLIDING: Final = "sliding_attention"
_FULL: Final = "full_attention"
_OTHER_KINDS: Final = (  # settings of drafters for other targets, which change the computation
    "attention_value_scale",
    "conv_kernel_size",
    "final_logit_softcapping",
    "input_embedding_scale",
    "output_multiplier",
    "swa_window_size",
    "use_swa",
)


@dataclass(frozen=True, slots=True)
class DFlash:
    """The settings that shape the drafter; sizes are counts of numbers."""

    config: JsonFile
    layers: int
    hidden: int
    intermediate: int
    vocab: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int
    norm_epsilon: float
    rope_theta: float
    block: int  # tokens proposed in one pass, the anchor included
    mask_token: int
    taps: tuple[int, ...]  # target layers whose outputs are read, from 0
    target_layers: int | None  # of the target it was made for, where it tells
    window: int | None  # of the sliding layers
    sliding: tuple[bool, ...]
    causal: bool | None

    @classmethod
    def read(cls, config: JsonFile) -> DFlash:
        """Raises `CheckpointError` for a missing or wrong setting."""
        config = config.over(config.section("dflash_config"))
        _refuse_other_kinds(config)
        layers = config.integer("num_hidden_layers", maximum=MOST_LAYERS)
        window, sliding = _sliding(config, layers)
        causal = config.values.get("is_causal", config.values.get("causal"))
        has_layers = config.values.get("num_target_layers") is not None
        return cls(
            config=config,
            layers=layers,
            hidden=config.integer("hidden_size"),
            intermediate=config.integer("intermediate_size"),
            vocab=config.integer("vocab_size", maximum=MOST_TOKENS),
            heads=config.integer("num_attention_heads"),
            kv_heads=config.integer("num_key_value_heads"),
            head_dim=config.integer("head_dim"),
            context=config.integer("max_position_embeddings"),
            norm_epsilon=config.number("rms_norm_eps"),
            rope_theta=rope_of(config).number("rope_theta"),
            block=config.integer("block_size", minimum=2),
            mask_token=config.integer("mask_token_id", minimum=0),
            taps=_taps(config),
            target_layers=config.integer("num_target_layers") if has_layers else None,
            window=window,
            sliding=sliding,
            causal=None if causal is None else bool(causal),
        )

    def check_target(self, target: Qwen35) -> None:
        """Raises `PairMismatchError` or `UnsupportedModelError` unless it can read this target."""
        layers = len(target.layer_types)
        if self.hidden != target.hidden:
            raise _mismatch(f"reads {self.hidden} numbers a layer", f"has {target.hidden}")
        if self.vocab != target.vocab:
            raise _mismatch(f"knows {self.vocab} tokens", f"knows {target.vocab}")
        if self.target_layers not in (None, layers):
            raise _mismatch(f"was made for {self.target_layers} layers", f"has {layers}")
        if max(self.taps) >= layers:
            raise _mismatch(f"reads layer {max(self.taps)}, counted from 0", f"has {layers}")
        if max(self.taps) == layers - 1:
            # The runtime hands over what enters a layer, and nothing enters behind the last:
            # llama.cpp would abort the process ("layer input tensor is null").
            raise UnsupportedModelError(
                f"The drafter reads the output of the last of {layers} layers.",
                remedy="Choose a drafter that reads only layers before the last.",
            )
        if self.mask_token >= self.vocab:
            raise self.config.wrong("mask_token_id", f"below the vocabulary size {self.vocab}")

    def describe(self, header: GGUFWriter, *, mrope: bool) -> None:
        """Write the settings under the keys that llama.cpp reads.

        `mrope`: the target turns queries and keys along several axes. The drafter then
        does so along time alone, and its sections say that.
        """
        for key, value in {
            "block_count": self.layers,
            "context_length": self.context,
            "embedding_length": self.hidden,
            "feed_forward_length": self.intermediate,
            "attention.head_count": self.heads,
            "attention.head_count_kv": self.kv_heads,
            "attention.key_length": self.head_dim,
            "attention.value_length": self.head_dim,
            "block_size": self.block,
        }.items():
            header.add_uint32(f"{ARCH}.{key}", value)
        header.add_float32(f"{ARCH}.rope.freq_base", self.rope_theta)
        header.add_float32(f"{ARCH}.attention.layer_norm_rms_epsilon", self.norm_epsilon)
        # The runtime counts what enters a layer, and layer i's output enters layer i + 1.
        header.add_array(f"{ARCH}.target_layers", [tap + 1 for tap in self.taps])
        if self.window is not None:
            header.add_uint32(f"{ARCH}.attention.sliding_window", self.window)
            header.add_array(f"{ARCH}.attention.sliding_window_pattern", list(self.sliding))
            # Not settled by z-lab's code and SGLang's in the same way; llama.cpp reads no such key.
            header.add_bool(f"{ARCH}.attention.sliding_causal", False)
        if self.causal is not None:
            header.add_bool(f"{ARCH}.attention.causal", self.causal)
        if mrope:
            header.add_array(f"{ARCH}.rope.dimension_sections", [self.head_dim // 2, 0, 0, 0])

    def tensors(self) -> Iterator[Expected]:
        """Every tensor of the drafter. It borrows the target's embedding and output head."""
        hidden, wide = self.hidden, (self.intermediate, self.hidden)
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        # `fc` joins the taps: a wrong count of them shows in its shape.
        fused = (hidden, len(self.taps) * hidden)
        yield Expected("fc.weight", "fc.weight", fused)
        yield Expected("hidden_norm.weight", "enc.output_norm.weight", (hidden,))
        yield Expected("norm.weight", "output_norm.weight", (hidden,))
        for i in range(self.layers):
            for source, name, shape in (
                ("input_layernorm", "attn_norm", (hidden,)),
                ("self_attn.q_proj", "attn_q", (queries, hidden)),
                ("self_attn.k_proj", "attn_k", (keys, hidden)),
                ("self_attn.v_proj", "attn_v", (keys, hidden)),
                ("self_attn.o_proj", "attn_output", (hidden, queries)),
                ("self_attn.q_norm", "attn_q_norm", (self.head_dim,)),
                ("self_attn.k_norm", "attn_k_norm", (self.head_dim,)),
                ("post_attention_layernorm", "ffn_norm", (hidden,)),
                ("mlp.gate_proj", "ffn_gate", wide),
                ("mlp.up_proj", "ffn_up", wide),
                ("mlp.down_proj", "ffn_down", wide[::-1]),
            ):
                yield Expected(f"layers.{i}.{source}.weight", f"blk.{i}.{name}.weight", shape)


def _taps(config: JsonFile) -> tuple[int, ...]:
    taps = tuple(config.items("target_layer_ids", int))
    if not taps or min(taps) < 0 or len(set(taps)) != len(taps):
        raise config.wrong("target_layer_ids", "a list of different layer numbers from 0 up")
    return taps


def _sliding(config: JsonFile, layers: int) -> tuple[int | None, tuple[bool, ...]]:
    """The window, and which layers it binds; none at all if the window is switched off."""
    if not (config.values.get("use_sliding_window") and config.values.get("sliding_window")):
        return None, (False,) * layers
    types = config.items("layer_types", str)
    if len(types) != layers or not set(types) <= {_SLIDING, _FULL}:
        raise config.wrong("layer_types", f"a list of {layers} times `{_SLIDING}` or `{_FULL}`")
    return config.integer("sliding_window"), tuple(kind == _SLIDING for kind in types)


def _refuse_other_kinds(config: JsonFile) -> None:
    found = [key for key in _OTHER_KINDS if config.values.get(key)]
    found += [key for key in ("attention_bias",) if config.values.get(key)]
    found += [key for key in ("rope_is_neox_style",) if config.values.get(key) is False]
    if config.values.get("hidden_act", "silu") != "silu":
        found.append("hidden_act")
    if found:
        raise UnsupportedModelError(
            f"`{config.path}` describes another kind of DFlash drafter: it sets `{found[0]}` "
            f"to {config.values[found[0]]!r}.",
            remedy="Choose the drafter that was made for Qwen3.5.",
        )


def _mismatch(drafter: str, target: str) -> PairMismatchError:
    return PairMismatchError(
        f"The drafter {drafter}; the target {target}.",
        remedy="Choose the drafter that was made for this target.",
    )
