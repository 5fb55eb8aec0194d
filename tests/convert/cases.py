"""The checkpoints on which the converter is compared with the tree's own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.convert import WeightType
from tests.convert import tiny

DEMO = Path(__file__).resolve().parents[2] / "assets" / "demo"
F32, F16, BF16, Q8_0 = WeightType.F32, WeightType.F16, WeightType.BF16, WeightType.Q8_0


@dataclass(frozen=True)
class Case:
    """`make` writes the checkpoint into a folder; `target` names the case of a drafter's target."""

    name: str
    weight_type: WeightType
    make: Callable[[Path], Path]
    target: str | None = None
    dtype: str = "BF16"  # of the source


def _target(name: str, weight_type: WeightType, **changes: Any) -> Case:
    dtype = changes.get("dtype", "BF16")
    return Case(name, weight_type, lambda folder: tiny.write_target(folder, **changes), dtype=dtype)


def _draft(name: str, weight_type: WeightType, target: str, **changes: Any) -> Case:
    return Case(name, weight_type, lambda folder: tiny.write_draft(folder, **changes), target)


def _demo(part: str, weight_type: WeightType) -> Case:
    # Copied, because the oracle names a model after its folder.
    def make(folder: Path) -> Path:
        return Path(shutil.copytree(DEMO / part, folder))

    return Case(f"demo-{part}-{weight_type}", weight_type, make, None if part == "target" else "")


def _old_rope(folder: Path) -> Path:
    """Rotary settings beside the others, a card, and merges as texts, as older tools wrote them."""

    def config(values: dict[str, Any]) -> None:
        text = values["text_config"]
        del text["rope_parameters"]["rope_theta"], text["rope_parameters"]["mrope_section"]
        text["rope_theta"] = 5000000
        del text["layer_types"]

    def tokenizer(values: dict[str, Any]) -> None:
        values["model"]["merges"] = [" ".join(pair) for pair in values["model"]["merges"]]

    tiny.write_target(folder)
    tiny.edit_json(folder / "config.json", config)
    tiny.edit_json(folder / "tokenizer.json", tokenizer)
    (folder / "README.md").write_text(
        "---\nlicense: apache-2.0\nbase_model: Qwen/Qwen3.5-4B-Base\ntags:\n- chat\n---\n# Hi\n"
    )
    return folder


def _marked(folder: Path) -> Path:
    """Every way in which the settings may say that a token is special, or has a role."""

    def settings(values: dict[str, Any]) -> None:
        values["bos_token"] = {
            "__type": "AddedToken",
            "content": "<|im_start|>",
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": True,
        }
        values["add_bos_token"] = True  # outranked by the byte-level post-processor
        values["additional_special_tokens"] = ["hello"]
        values["image_token"] = "</think>"
        values["mask_token"] = "<|vision_pad|>"

    tiny.write_target(folder, template="config")
    tiny.edit_json(folder / "tokenizer_config.json", settings)
    return folder


CASES = [
    _target("full-repository", Q8_0, mtp=True, vision=True, shards=3),
    _target("no-mtp-no-vision", BF16),
    _target("untied", F16, tied=False, shards=2, template="config"),
    _target("text-only", F32, causal_lm=True, dtype="F32"),
    _target("heads-equal", Q8_0, key_heads=4, value_heads=4, dtype="F16"),
    _target("heads-double", F32, key_heads=4, value_heads=8, layers=8),
    _target("half-floats", F32, dtype="F16", template="none"),
    # 72 is no multiple of a Q8_0 block: these rows become F16.
    _target("odd-rows", Q8_0, hidden=72, ff=100),
    _target("no-tokenizer-config", BF16, tokenizer_config=False),
    Case("old-rope", BF16, _old_rope),
    Case("marked-tokens", F16, _marked),
    _draft("draft", BF16, "full-repository"),
    _draft("draft-f32-q8", Q8_0, "marked-tokens", dtype="F32"),
    _draft("draft-march", F32, "untied", sliding=None, taps=(1, 2), layers=5),
    _draft("draft-old-target", F16, "old-rope", extra_config={"is_causal": False}),
]
if (DEMO / "draft" / "config.json").is_file():
    CASES += [_demo("target", F32), _demo("target", Q8_0), _demo("target", BF16)]
    CASES += [
        Case(f"demo-draft-{kind}", kind, _demo("draft", kind).make, "demo-target-f32")
        for kind in (F32, Q8_0)
    ]
