"""What the hub has of a model, and what of it is on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from app.errors import UnsupportedModelError

_INDEX: Final = "model.safetensors.index.json"
_NO_SHARDS: Final = ("adapter_", "consolidated")  # LoRA, and the same weights once more in one
_NEEDED: Final = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.json",
    "chat_template.jinja",
    _INDEX,
)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file of a repository. `etag` names its contents: a sha256 in hex where it is 64 long,
    else the id that git gives them. Raises `ValueError` where one of both would lead elsewhere."""

    name: str
    bytes: int
    etag: str

    def __post_init__(self) -> None:
        if Path(self.name).name != self.name or not self.etag.isalnum():  # both become paths
            raise ValueError(f"{self.name!r} with the contents {self.etag!r} is no file")


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of one commit of `repo` that a conversion needs. `licence` None: none is told."""

    repo: str
    commit: str
    files: tuple[RemoteFile, ...]
    licence: str | None = None

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, value: dict[str, Any]) -> Listing:
        files = tuple(RemoteFile(**file) for file in value["files"])
        return cls(**{**value, "files": files})


@dataclass(frozen=True, slots=True)
class Found:
    """A listing, and what the cache of the hub in the folder `cache` has of it.

    `here` are the names of the files that are whole (by their size), `missing` is the number
    of bytes that are still to be fetched.
    """

    listing: Listing
    cache: Path
    here: frozenset[str]
    missing: int


def needed(repo: str, files: Iterable[RemoteFile]) -> tuple[RemoteFile, ...]:
    """Those of a repository's files that a conversion reads.

    Raises `UnsupportedModelError` for one without weights in the safetensors format.
    """
    every = tuple(files)
    names = {file.name for file in every}
    # An index may name shards by any name: `mtp.safetensors` beside the others.
    weights = "*.safetensors" if _INDEX in names else "model*.safetensors"
    chosen = {n for n in names if fnmatchcase(n, weights) and not n.startswith(_NO_SHARDS)}
    if chosen:
        return tuple(file for file in every if file.name in chosen or file.name in _NEEDED)
    kinds = {
        ".gguf": ("GGUF files alone", "Download one yourself and open it from this machine."),
        ".bin": ("weights in PyTorch's own format", "Choose a model in the safetensors format."),
    }
    for suffix, (what, remedy) in kinds.items():
        if any(file.name.endswith(suffix) for file in every):
            raise UnsupportedModelError(f"`{repo}` has {what}.", remedy=remedy)
    raise UnsupportedModelError(
        f"`{repo}` has no `model*.safetensors`.", remedy="Name a repository with a model."
    )
