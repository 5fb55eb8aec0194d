"""Which tensor is stored as what: the mixes of llama.cpp, and ours beside them.

llama.cpp's own (`Recipe.LLAMA`) is what `llama-quantize` chooses for these two architectures,
tensor for tensor (rules: `llama_tensor_get_type_impl` of llama.cpp's `src/llama-quant.cpp`):
of a Q4_K_M or Q5_K_M file, a half of `ffn_down` and of the value projections get six bits, in
the first and last eighth of the layers and in every third one between; the embedding gets six
bits where it is the output head as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from app.convert.weights import Shape, WeightType

Kind = GGMLQuantizationType


class Recipe(StrEnum):
    """How the tensors of a quantised file share its bytes."""

    LLAMA = "llama"  # llama.cpp's mix: the bytes of `llama-quantize`
    SLIPSTREAM = "slipstream"  # ours: what measured as sensitive has one step more


_BASE: Final = {
    WeightType.F32: Kind.F32,
    WeightType.F16: Kind.F16,
    WeightType.BF16: Kind.BF16,
    WeightType.Q8_0: Kind.Q8_0,
    WeightType.Q6_K: Kind.Q6_K,
    WeightType.Q5_K_M: Kind.Q5_K,
    WeightType.Q4_K_M: Kind.Q4_K,
}
_MEDIUM: Final = (WeightType.Q4_K_M, WeightType.Q5_K_M)
_STEP_UP: Final = {Kind.Q4_K: Kind.Q5_K, Kind.Q5_K: Kind.Q6_K, Kind.Q6_K: Kind.Q8_0}
_OTHER_BLOCKS: Final = {Kind.Q4_K: Kind.Q5_0, Kind.Q5_K: Kind.Q5_1, Kind.Q6_K: Kind.Q8_0}

_VALUES: Final = ("attn_v", "attn_qkv")
_FULL: Final = ("_norm.weight", ".ssm_conv1d.weight")  # kernels take these only as F32

SENSITIVE: Final = ("ssm_out", "attn_qkv")
"""Parts of a layer that `Recipe.SLIPSTREAM` gives one step more; see README.md, "Types"."""


def order(name: str) -> tuple[int, str]:
    """Sorts tensors as llama.cpp does: what belongs to no layer, then layer by layer."""
    layer = re.match(r"blk\.(\d+)\.", name)
    return int(layer[1]) if layer else -1, name


def choose_kinds(
    tensors: Sequence[tuple[str, Shape]],
    weight_type: WeightType,
    recipe: Recipe,
    *,
    raised: Sequence[str] = SENSITIVE,
) -> list[Kind]:
    """The type of each tensor (GGUF name, shape), which come sorted by `order`."""
    rank: dict[str, int] = {}
    total = {part: sum(_part(name) in group for name, _ in tensors) for part, group in _GROUPS}
    tied = all(name != "output.weight" for name, _ in tensors)
    kinds = []
    for name, shape in tensors:
        if len(shape) <= 1 or name.endswith(_FULL):
            kinds.append(Kind.F32)
            continue
        kind = _BASE[weight_type]
        for part, group in _GROUPS:
            if _part(name) in group:
                i = rank[part] = rank.get(part, -1) + 1
                if weight_type in _MEDIUM and _more_bits(i, total[part]):
                    kind = Kind.Q6_K
        if name == "output.weight" or (tied and name == "token_embd.weight"):
            kind = _of_head(kind, shape)
        if recipe is Recipe.SLIPSTREAM and _part(name) in raised:
            kind = _STEP_UP.get(kind, kind)
        kinds.append(_fitting(kind, shape))
    return kinds


def default_recipe(weight_type: WeightType) -> Recipe:
    """Ours where it measured as the nearer one to BF16 at no more than 5 % more bytes."""
    return Recipe.SLIPSTREAM if weight_type in _OURS_PAYS else Recipe.LLAMA


def default_draft_type(weight_type: WeightType) -> WeightType:
    """The drafter's type beside a target of `weight_type`: the same.

    A smaller drafter drafts faster, and of the demo pair no type from BF16 down to Q4_K_M loses
    a single accepted token; README.md, "Types".
    """
    return weight_type


_OURS_PAYS: Final = (WeightType.Q4_K_M, WeightType.Q5_K_M)  # README.md, "Types"
_GROUPS: Final = (("values", _VALUES), ("down", ("ffn_down",)))


def _part(name: str) -> str:
    """`ssm_out` of `blk.3.ssm_out.weight`."""
    return name.removesuffix(".weight").rpartition(".")[2]


def _more_bits(layer: int, layers: int) -> bool:
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def _of_head(kind: Kind, shape: Shape) -> Kind:
    block, _ = GGML_QUANT_SIZES[kind]
    if block == 1 or kind is Kind.Q8_0:
        return kind
    return Kind.Q8_0 if shape[-1] % block else Kind.Q6_K


def _fitting(kind: Kind, shape: Shape) -> Kind:
    """`kind`, or what stands in for it where a row is no whole number of its blocks."""
    for candidate in (kind, _OTHER_BLOCKS.get(kind, kind)):
        if shape[-1] % GGML_QUANT_SIZES[candidate][0] == 0:
            return candidate
    return Kind.F16
