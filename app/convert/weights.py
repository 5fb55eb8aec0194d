"""How weights are stored in a GGUF file, and the bytes that this takes."""

from __future__ import annotations

from enum import StrEnum
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, LlamaFileType

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


class WeightType(StrEnum):
    """Storage of the weight matrices. Vectors, norms and the convolution stay F32."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    Q8_0 = "q8_0"
    Q6_K = "q6_k"
    Q5_K_M = "q5_k_m"
    Q4_K_M = "q4_k_m"

    @property
    def file_type(self) -> LlamaFileType:
        return _FILE_TYPES[self]

    @property
    def quantised(self) -> bool:
        """Whether numbers share a scale: then the native quantiser makes them."""
        return self not in (WeightType.F32, WeightType.F16, WeightType.BF16)


_FILE_TYPES = {
    WeightType.F32: LlamaFileType.ALL_F32,
    WeightType.F16: LlamaFileType.MOSTLY_F16,
    WeightType.BF16: LlamaFileType.MOSTLY_BF16,
    WeightType.Q8_0: LlamaFileType.MOSTLY_Q8_0,
    WeightType.Q6_K: LlamaFileType.MOSTLY_Q6_K,
    WeightType.Q5_K_M: LlamaFileType.MOSTLY_Q5_K_M,
    WeightType.Q4_K_M: LlamaFileType.MOSTLY_Q4_K_M,
}


def bytes_of(shape: Shape, kind: GGMLQuantizationType) -> int:
    block, size = GGML_QUANT_SIZES[kind]
    return prod(shape) // block * size


def widen(stored: Array, dtype: str) -> Array:
    """`stored` as float32; for `dtype` BF16 it is uint16 with the bits of bfloat16.

    The model itself computes its norms in float32, so whatever is computed here is too.
    """
    if dtype == "BF16":
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32, copy=False)
