"""From Hugging Face checkpoints to GGUF files, without torch.

Two kinds of model are known: the text part of Qwen3.5 and its DFlash drafter. Weights are
read, changed, quantised and written piece by piece; memory holds at most the largest tensor
that changes its order, twice.
"""

from __future__ import annotations

from app.convert.conversion import (
    Converted,
    ConvertedPair,
    convert_draft,
    convert_pair,
    convert_target,
    planned_bytes,
)
from app.convert.gguf_file import TensorError
from app.convert.mix import Recipe, default_draft_type, default_recipe
from app.convert.watch import OnBytes
from app.convert.weights import WeightType

__all__ = [
    "Converted",
    "ConvertedPair",
    "OnBytes",
    "Recipe",
    "TensorError",
    "WeightType",
    "convert_draft",
    "convert_pair",
    "convert_target",
    "default_draft_type",
    "default_recipe",
    "planned_bytes",
]
