"""The settings of Qwen3.5's text part, and their keys in GGUF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gguf import GGUFWriter

from app.convert.heads import ValueHeads
from app.convert.json_file import JsonFile
from app.convert.rope import rope_of
from app.errors import UnsupportedModelError

ARCH: Final = "qwen35"
ARCHITECTURES: Final = ("Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM")

LINEAR: Final = "linear_attention"
FULL: Final = "full_attention"
MOST_LAYERS: Final = 512  # that llama.cpp has room for
MOST_TOKENS: Final = 1 << 24  # many times as many as any vocabulary has
_MOST_PAIRS: Final = 1 << 16  # many times as many as any head has
_MROPE_DEFAULT: Final = (11, 11, 10)  # of transformers, for checkpoints that leave it out


@dataclass(frozen=True, slots=True)
class Qwen35:
    """The settings that shape the model; sizes are counts of numbers."""

    layer_types: tuple[str, ...]
    hidden: int
    intermediate: int
    vocab: int
    heads: int
    kv_heads: int
    head_dim: int
    linear_heads: ValueHeads
    conv: int
    context: int
    norm_epsilon: float
    full_interval: int
    rope: JsonFile
    rotary_share: float  # of a head, what is turned
    sections: tuple[int, ...]  # pairs of that along time, height and width
    tied: bool

    @classmethod
    def read(cls, config: JsonFile) -> Qwen35:
        """Raises `CheckpointError` for a missing or wrong setting."""
        tied = config.values.get("tie_word_embeddings")
        config = config.over(config.section("text_config"))
        layers = config.integer("num_hidden_layers", maximum=MOST_LAYERS)
        if config.values.get("attention_bias") or not config.values.get("attn_output_gate", True):
            raise UnsupportedModelError(
                f"`{config.path}` asks for another attention than that of Qwen3.5.",
                remedy="Choose an original Qwen3.5 model.",
            )
        rope = rope_of(config)
        return cls(
            layer_types=_layer_types(config, layers),
            hidden=config.integer("hidden_size"),
            intermediate=config.integer("intermediate_size"),
            vocab=config.integer("vocab_size", maximum=MOST_TOKENS),
            heads=config.integer("num_attention_heads"),
            kv_heads=config.integer("num_key_value_heads"),
            head_dim=config.integer("head_dim"),
            linear_heads=_linear_heads(config),
            conv=config.integer("linear_conv_kernel_dim"),
            context=config.integer("max_position_embeddings"),
            norm_epsilon=config.number("rms_norm_eps"),
            full_interval=_full_interval(config),
            rope=rope,
            rotary_share=_rotary_share(rope),
            sections=_sections(rope),
            tied=bool(tied or config.values.get("tie_word_embeddings")),
        )

    def describe(self, header: GGUFWriter) -> None:
        """Write the settings under the keys that llama.cpp reads."""
        heads = self.linear_heads
        for key, value in {
            "block_count": len(self.layer_types),
            "context_length": self.context,
            "embedding_length": self.hidden,
            "feed_forward_length": self.intermediate,
            "attention.head_count": self.heads,
            "attention.head_count_kv": self.kv_heads,
            "attention.key_length": self.head_dim,
            "attention.value_length": self.head_dim,
            "ssm.conv_kernel": self.conv,
            "ssm.state_size": heads.width,
            "ssm.group_count": heads.keys,
            "ssm.time_step_rank": heads.values,
            "ssm.inner_size": heads.values * heads.width,
            "full_attention_interval": self.full_interval,
            "rope.dimension_count": int(self.head_dim * self.rotary_share),
        }.items():
            header.add_uint32(f"{ARCH}.{key}", value)
        header.add_array(f"{ARCH}.rope.dimension_sections", [*self.sections, 0, 0, 0, 0][:4])
        header.add_float32(f"{ARCH}.rope.freq_base", self.rope.number("rope_theta"))
        header.add_float32(f"{ARCH}.attention.layer_norm_rms_epsilon", self.norm_epsilon)
        recurrent = [kind == LINEAR for kind in self.layer_types]
        header.add_array(f"{ARCH}.attention.recurrent_layers", recurrent)


def _rotary_share(rope: JsonFile) -> float:
    if rope.values.get("partial_rotary_factor") is None:
        return 0.25
    share = rope.number("partial_rotary_factor")
    if share > 1:
        raise rope.wrong("partial_rotary_factor", "a share of 1")
    return share


def _sections(rope: JsonFile) -> tuple[int, ...]:
    if not rope.values.get("mrope_section"):
        return _MROPE_DEFAULT
    sections = tuple(rope.items("mrope_section", int))
    if not all(0 <= pairs <= _MOST_PAIRS for pairs in sections):
        raise rope.wrong("mrope_section", f"a list of numbers from 0 to {_MOST_PAIRS}")
    return sections


def _full_interval(config: JsonFile) -> int:
    if config.values.get("full_attention_interval") is None:
        return 4
    return config.integer("full_attention_interval")


def _layer_types(config: JsonFile, layers: int) -> tuple[str, ...]:
    if config.values.get("layer_types") is None:
        interval = _full_interval(config)
        return tuple(LINEAR if (i + 1) % interval else FULL for i in range(layers))
    types = tuple(config.items("layer_types", str))
    if len(types) != layers or not set(types) <= {LINEAR, FULL}:
        raise config.wrong("layer_types", f"a list of {layers} times `{LINEAR}` or `{FULL}`")
    return types


def _linear_heads(config: JsonFile) -> ValueHeads:
    heads = ValueHeads(
        keys=config.integer("linear_num_key_heads"),
        values=config.integer("linear_num_value_heads"),
        width=config.integer("linear_value_head_dim"),
    )
    if heads.values % heads.keys:
        raise config.wrong("linear_num_value_heads", f"a multiple of {heads.keys} key heads")
    if config.integer("linear_key_head_dim") != heads.width:
        raise config.wrong(
            "linear_key_head_dim", f"{heads.width}, the width of a value head: the only kind known"
        )
    return heads
