"""The models that Slipstream knows by name: the built-in one, and those of `catalog.json`.

What public text does not tell of a model is None here. The hub tells it when the model is
listed, and the passport of the pair keeps it: nothing is invented.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from app import paths
from app.errors import OptionError

_REPO: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_REVISION: Final = re.compile(r"[\w./-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class HubSource:
    """A checkpoint on the Hugging Face Hub. `revision` None is not pinned yet: its main branch.

    `licence` is the hub's name of it, None where it is not known. One that is on this machine
    already has its folder, absolute, in place of ``owner/name``.
    """

    repo: str
    revision: str | None = None
    licence: str | None = None

    @classmethod
    def parse(cls, text: str) -> HubSource:
        """From ``owner/name``, ``owner/name@revision`` or a folder. Raises `OptionError`.

        A folder is given whole, from home (``~``), or from here by a dot: ``./name``.
        """
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            folder = Path(text.strip()).expanduser()
            if (folder.is_absolute() or text.strip().startswith(".")) and folder.is_dir():
                return cls(str(folder.absolute()))
        repo, at, revision = text.strip().partition("@")
        repo = repo.removeprefix("https://huggingface.co/").rstrip("/")
        if not _REPO.fullmatch(repo) or (at and not _REVISION.fullmatch(revision)):
            raise OptionError(
                f"`{text}` is no model on the hub.",
                remedy="Write `owner/name`, `owner/name@revision`, or a folder on this machine "
                "(one in this folder as `./name`).",
            )
        return cls(repo, revision or None)

    @property
    def folder(self) -> Path | None:
        """Where it is on this machine; None for one on the hub."""
        return Path(self.repo) if Path(self.repo).is_absolute() else None

    def __str__(self) -> str:
        return self.repo if self.revision is None else f"{self.repo}@{self.revision}"


@dataclass(frozen=True, slots=True)
class VendorSampling:
    """How its makers say that a model is to be sampled."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float = 0.0
    presence_penalty: float = 0.0


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A pair by its `id`, the name for commands and settings.

    A bundled pair has its checkpoints in `assets` / id; any other has hub sources, without
    `draft` where no drafter is known. `type` is how its weights are stored unless chosen
    otherwise, `max_context` is the most tokens it can.
    `sampling` is by mode: thinking, coding, plain.
    """

    id: str
    title: str
    summary: str
    target: HubSource | None = None
    draft: HubSource | None = None
    type: str = ""
    max_context: int | None = None
    sampling: Mapping[str, VendorSampling] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def bundled(self) -> bool:
        return self.target is None


TYPES: Final = {
    "q4_k_m": "Q4_K_M",
    "q5_k_m": "Q5_K_M",
    "q6_k": "Q6_K",
    "q8_0": "Q8_0",
    "bf16": "BF16",
}
"""What a pair from the hub can be stored as, and how that is called."""

DEFAULT_TYPE: Final = "q4_k_m"
"""How the weights of a pair that is not in the catalogue are stored."""

FIRST: Final = "qwen3.5-4b"
"""The model that Slipstream is made for, which is offered before others."""

RECIPES: Final = {"slipstream": "Slipstream", "llama": "llama.cpp"}
"""Which of a file's tensors get more bits than others, and how that is called."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a type and recipe come to: `bytes` of a target of 4B, and its `divergence`.

    That is the mean Kullback-Leibler divergence from BF16, in 10^-3 nats a token, of the demo's
    target on held-out texts (README.md, "Types").
    """

    type: str
    recipe: str
    bytes: int
    divergence: float


STORED: Final = (
    Stored("q4_k_m", "slipstream", 2_821_699_584, 7.29),
    Stored("q4_k_m", "llama", 2_697_836_544, 9.86),
    Stored("q5_k_m", "slipstream", 3_191_814_144, 2.87),
    Stored("q5_k_m", "llama", 3_064_018_944, 3.52),
    Stored("q6_k", "llama", 3_453_087_744, 1.75),
    Stored("q6_k", "slipstream", 3_635_933_184, 1.40),
    Stored("q8_0", "llama", 4_471_435_264, 0.26),
    Stored("bf16", "llama", 8_413_425_664, 0.0),
)
"""The default recipe of each type first."""

DOWNLOAD: Final = 9_200_000_000
"""Bytes of a checkpoint of 4B as the hub has it: BF16, with parts that a chat does not use."""

DEMO: Final = KnownModel(
    id="demo",
    title="Built-in guide",
    summary="A tiny demo model that comes with Slipstream and explains it.",
    max_context=32_768,
)


def read(file: Path) -> tuple[KnownModel, ...]:
    """The models in a catalogue file."""
    table = json.loads(file.read_text(encoding="utf-8"))
    modes = {
        name: MappingProxyType({mode: VendorSampling(**of) for mode, of in modes.items()})
        for name, modes in table["sampling"].items()
    }
    return tuple(_model(entry, modes) for entry in table["models"])


def find(model_id: str) -> KnownModel | None:
    return next((model for model in MODELS if model.id == model_id), None)


def stored(weight_type: str) -> dict[str, Stored]:
    """What the type comes to by each recipe that makes a difference, its default first."""
    return {one.recipe: one for one in STORED if one.type == weight_type}


def own(target: HubSource, draft: HubSource | None) -> KnownModel:
    """A pair of the user's choice, as if the catalogue had it."""
    known = [m for m in MODELS if m.target and m.target.repo == target.repo]
    name = target.folder.name if target.folder else target.repo.partition("/")[2]
    named = name if target.folder else target.repo
    return KnownModel(
        id=re.sub(r"[^a-z0-9.-]+", "-", named.lower()).strip("-.") or "model",
        title=name,
        summary=f"From {target.repo}.",
        target=target,
        draft=draft,
        type=DEFAULT_TYPE,
        sampling=known[0].sampling if known else MappingProxyType({}),
    )


def _model(entry: dict[str, Any], modes: Mapping[str, Mapping[str, VendorSampling]]) -> KnownModel:
    sources = {role: entry[role] and HubSource(**entry[role]) for role in ("target", "draft")}
    return KnownModel(**{**entry, **sources, "sampling": modes[entry["sampling"]]})


MODELS: Final = (DEMO, *read(paths.assets() / "catalog.json"))
