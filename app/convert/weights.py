"""How weights are stored in a GGUF file, and the bytes that this takes."""

from __future__ import annotations

from enum import StrEnum
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, LlamaFileType
from gguf.quants import quantize

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


class WeightType(StrEnum):
    """Storage of the weight matrices. Vectors, norms and the convolution stay F32."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    Q8_0 = "q8_0"

    @property
    def file_type(self) -> LlamaFileType:
        return _FILE_TYPES[self]


_FILE_TYPES = {
    WeightType.F32: LlamaFileType.ALL_F32,
    WeightType.F16: LlamaFileType.MOSTLY_F16,
    WeightType.BF16: LlamaFileType.MOSTLY_BF16,
    WeightType.Q8_0: LlamaFileType.MOSTLY_Q8_0,
}


def storage_of(name: str, shape: Shape, wanted: WeightType) -> GGMLQuantizationType:
    """The type in which the tensor `name` is stored when weights shall be `wanted`.

    The runtime's kernels take norms, vectors and convolutions only as F32. A row that is
    not a whole number of Q8_0 blocks is stored as F16, as llama.cpp does it.
    """
    if len(shape) <= 1 or name.endswith(("_norm.weight", ".ssm_conv1d.weight")):
        return GGMLQuantizationType.F32
    kind = GGMLQuantizationType[wanted.name]
    block, _ = GGML_QUANT_SIZES[kind]
    return GGMLQuantizationType.F16 if shape[-1] % block else kind


def bytes_of(shape: Shape, kind: GGMLQuantizationType) -> int:
    block, size = GGML_QUANT_SIZES[kind]
    return prod(shape) // block * size


def widen(stored: Array, dtype: str) -> Array:
    """Numbers of `stored`, which for `dtype` BF16 is uint16 with the bits of bfloat16."""
    if dtype != "BF16":
        return stored
    return (stored.astype(np.uint32) << 16).view(np.float32)


def encode(values: Array, kind: GGMLQuantizationType) -> Array:
    """`values` (whole rows of float16 or float32) in the bytes of `kind`.

    Raises `FloatingPointError` where a finite value would become infinite.
    """
    with np.errstate(over="raise"):
        return np.ascontiguousarray(quantize(values, kind))
