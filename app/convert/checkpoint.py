"""A Hugging Face folder: its settings, and where each of its tensors lies."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.convert.json_file import JsonFile
from app.convert.shard import StoredTensor, read_shard
from app.errors import CheckpointError, UnsupportedModelError

_log = logging.getLogger(__name__)

_SINGLE: Final = "model.safetensors"
_INDEX: Final = "model.safetensors.index.json"
_OTHER_FILES: Final = (  # pattern, what it is, what to do
    (
        "adapter_*.safetensors",
        "an adapter (LoRA), which is no model of its own",
        "Merge it into its base model and convert the result.",
    ),
    (
        "*.gguf",
        "GGUF files, which need no conversion",
        "Name them `target*.gguf` and `draft*.gguf` and open the folder itself.",
    ),
    (
        "*.bin",
        "weights in PyTorch's own format",
        "Choose the model in the safetensors format.",
    ),
)
_DOWNLOAD: Final = "Download the model again."


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder whose shards are whole and agree with its index."""

    folder: Path
    config: JsonFile
    tensors: dict[str, StoredTensor]  # shard by shard, sorted by name within one

    @classmethod
    def open(cls, folder: Path, architectures: tuple[str, ...]) -> Checkpoint:
        """Raises `CheckpointError` or, for any other model, `UnsupportedModelError`."""
        config = read_config(folder, architectures)
        return cls(folder, config, _locate_tensors(folder))


def read_config(folder: Path, architectures: tuple[str, ...]) -> JsonFile:
    """``config.json`` of a model that is one of `architectures`."""
    if not folder.is_dir():
        raise CheckpointError(
            f"`{folder}` is not a folder.", remedy="Name the folder that holds `config.json`."
        )
    if not (folder / "config.json").exists():
        _refuse_other_files(folder)
    config = JsonFile.read(folder / "config.json")
    found = config.items("architectures", str)
    if not any(name in architectures for name in found):
        raise UnsupportedModelError(
            f"`{folder}` holds a model of the architecture `{', '.join(found)}`.",
            remedy=f"Choose a folder with a `{architectures[0]}`.",
        )
    if config.values.get("quantization_config"):
        raise UnsupportedModelError(
            f"`{folder}` holds weights that are quantised already.",
            remedy="Download the original model in BF16, F16 or F32.",
        )
    return config


def _refuse_other_files(folder: Path) -> None:
    """A folder without what is needed may hold something else, which more downloads cannot mend."""
    for pattern, what, remedy in _OTHER_FILES:
        if any(folder.glob(pattern)):
            raise UnsupportedModelError(f"`{folder}` holds {what}.", remedy=remedy)


def _locate_tensors(folder: Path) -> dict[str, StoredTensor]:
    index = folder / _INDEX
    if not index.is_file() or _is_stale(index, folder):
        if not (folder / _SINGLE).is_file():
            _refuse_other_files(folder)
            raise CheckpointError(
                f"`{folder}` has neither `{_SINGLE}` nor `{_INDEX}`.", remedy=_DOWNLOAD
            )
        return read_shard(folder / _SINGLE)
    return _follow_index(JsonFile.read(index), folder)


def _is_stale(index: Path, folder: Path) -> bool:
    """Whether the index is left over from a model in shards beside one in a whole file."""
    if not (folder / _SINGLE).is_file():
        return False
    shards = set(map(str, JsonFile.read(index).section("weight_map").values()))
    if shards == {_SINGLE} or all((folder / shard).is_file() for shard in shards):
        return False
    _log.warning("Ignoring `%s`, which names absent files; `%s` is there.", index, _SINGLE)
    return True


def _follow_index(index: JsonFile, folder: Path) -> dict[str, StoredTensor]:
    weight_map = index.section("weight_map")
    for name, file in weight_map.items():
        if not isinstance(file, str) or Path(file).name != file:
            raise CheckpointError(
                f"`{index.path}` sends the tensor `{name}` to {file!r}, which is not a file name.",
                remedy=_DOWNLOAD,
            )
    if not weight_map:
        raise CheckpointError(f"`{index.path}` lists no tensors.", remedy=_DOWNLOAD)
    tensors: dict[str, StoredTensor] = {}
    for file in sorted(set(weight_map.values())):
        shard = read_shard(folder / file)
        promised = {name for name, place in weight_map.items() if place == file}
        for name in sorted(promised ^ set(shard)):
            where = "is not in" if name in promised else "is not listed in the index, but is in"
            raise CheckpointError(
                f"The tensor `{name}` {where} `{folder / file}`.", remedy=_DOWNLOAD
            )
        tensors.update(shard)
    return tensors
