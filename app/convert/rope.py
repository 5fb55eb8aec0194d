"""Rotary position settings, which transformers has written in two ways over time."""

from __future__ import annotations

from app.convert.json_file import JsonFile
from app.errors import UnsupportedModelError


def rope_of(config: JsonFile) -> JsonFile:
    """`rope_parameters`, or the older keys beside them. Raises for any scaling of positions."""
    rope = dict(config.section("rope_parameters") or config.section("rope_scaling"))
    for key in ("rope_theta", "partial_rotary_factor"):
        if rope.get(key) is None and config.values.get(key) is not None:
            rope[key] = config.values[key]
    kind = rope.get("rope_type", rope.get("type"))
    if kind not in (None, "default"):
        raise UnsupportedModelError(
            f"`{config.path}` stretches positions by `{kind}`.",
            remedy="Use the model with its original `config.json`.",
        )
    return JsonFile(config.path, rope)
