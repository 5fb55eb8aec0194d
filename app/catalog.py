"""The models that Slipstream knows by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class HubSource:
    """A checkpoint on the Hugging Face Hub. `revision` None is not pinned yet."""

    repo: str
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A pair by its `id`, the name for commands and settings.

    A bundled pair has its checkpoints in `assets` / id; any other has hub sources.
    `coming` says why it cannot be had yet; empty where it can.
    """

    id: str
    title: str
    summary: str
    target: HubSource | None = None
    draft: HubSource | None = None
    coming: str = ""

    @property
    def bundled(self) -> bool:
        return self.target is None


DEMO: Final = KnownModel(
    id="demo",
    title="Built-in guide",
    summary="A tiny demo model that comes with Slipstream and explains it.",
)

QWEN35_4B: Final = KnownModel(
    id="qwen3.5-4b",
    title="Qwen3.5-4B",
    summary="Qwen3.5-4B with its DFlash drafter.",
    target=HubSource("Qwen/Qwen3.5-4B"),
    draft=HubSource("z-lab/Qwen3.5-4B-DFlash"),
    coming="Its download comes with a later version; until then, use `slipstream convert`.",
)

MODELS: Final = (DEMO, QWEN35_4B)


def find(model_id: str) -> KnownModel | None:
    return next((model for model in MODELS if model.id == model_id), None)
