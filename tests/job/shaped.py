"""A pair laid out as Qwen3.5-4B is, small and with weights that make it work.

Config, names and heads are the real ones, with fewer layers and narrower; the target comes in
shards, with a vision tower and a head for multi-token prediction. Whatever is asked, both say
the same token: each layer adds nothing, and every embedding leans most to one of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from tests.convert import full_size, tiny

TARGET: Final = replace(full_size.SHAPE, layers=4, hidden=256, ff=512, vocab=320, shards=3)
DRAFT: Final = tiny.Draft(layers=2, hidden=256, ff=512, head_dim=64)
SAYS: Final = "A"
"""What each of its tokens is; a tokenizer of bytes, so that is its id too."""

_SILENT: Final = ("o_proj.weight", "out_proj.weight", "down_proj.weight")


def write_pair(folder: Path) -> tuple[Path, Path]:
    """The folders of the target and of its drafter."""
    target = tiny.write_target(folder / "target", TARGET)
    tiny.edit_json(
        target / "config.json",
        lambda c: c["text_config"]["rope_parameters"].update(mrope_section=[11, 11, 10]),
    )
    tensors = _quiet(tiny.random_tensors(tiny.target_shapes(TARGET), "BF16", 0))
    embedding = np.random.default_rng(0).normal(0, 0.02, (TARGET.vocab, TARGET.hidden))
    embedding[:, 0] = 1.0
    embedding[ord(SAYS)] *= 3
    tensors["model.language_model.embed_tokens.weight"] = tiny.to_dtype(embedding, "BF16")
    tensors["model.language_model.norm.weight"][1][:] = 0  # which stands for one
    tiny.write_tensors(target, tensors, TARGET.shards)
    draft = tiny.write_draft(folder / "draft", DRAFT)
    tensors = _quiet(tiny.random_tensors(tiny.draft_shapes(DRAFT), "BF16", 1))
    tensors["norm.weight"] = tiny.to_dtype(np.ones(DRAFT.hidden), "BF16")
    tiny.write_tensors(draft, tensors, 1)
    return target, draft


def _quiet(tensors: tiny.Tensors) -> tiny.Tensors:
    for name, (_, values) in tensors.items():
        if name.endswith(_SILENT):
            values[:] = 0
    return tensors
