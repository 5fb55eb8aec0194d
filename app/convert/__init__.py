"""From Hugging Face checkpoints to GGUF files, without torch.

Two kinds of model are known: the text part of Qwen3.5 and its DFlash drafter. Weights are
read, changed and written piece by piece; memory holds at most the largest tensor twice.
"""

from __future__ import annotations

from app.convert.conversion import (
    Converted,
    ConvertedPair,
    convert_draft,
    convert_pair,
    convert_target,
)
from app.convert.watch import OnBytes
from app.convert.weights import WeightType

__all__ = [
    "Converted",
    "ConvertedPair",
    "OnBytes",
    "WeightType",
    "convert_draft",
    "convert_pair",
    "convert_target",
]
