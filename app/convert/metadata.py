"""The `general.*` keys: what a model is called, who made it, how it likes to be sampled."""

from __future__ import annotations

import logging
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import gguf
from gguf import GGUFWriter

from app.convert.json_file import JsonFile, read_json
from app.convert.weights import WeightType
from app.errors import CheckpointError, is_text, valid_text

_log = logging.getLogger(__name__)

_SAMPLING: Final = {  # fields of gguf.Metadata, and their keys in generation_config.json
    "sampling_top_k": ("top_k", int),
    "sampling_top_p": ("top_p", float),
    "sampling_min_p": ("min_p", float),
    "sampling_temp": ("temperature", float),
    "sampling_penalty_repeat": ("repetition_penalty", float),
}

_LISTS: Final = ("tags", "languages", "base_models", "datasets")  # fields of gguf.Metadata
_LARGEST: Final = 2**31  # numbers from there on nobody means, and GGUF cannot hold
_NAME: Final = "_name_or_path"  # the one setting that `gguf.Metadata` looks at


def describe_model(header: GGUFWriter, folder: Path, config: JsonFile, parameters: int) -> None:
    """Write all that the folder tells: model card, settings, and failing these its own name.

    `parameters` is the count of numbers in the weights. What names parts of a model's
    name is left to `gguf.Metadata`, so that it reads as from llama.cpp's converter.
    """
    name = config.values.get(_NAME)
    named = {_NAME: name} if is_text(name) else {}
    called = folder_name(folder)
    metadata = gguf.Metadata.apply_metadata_heuristic(
        gguf.Metadata(), _card(folder), named, Path(called), parameters
    )
    for item in fields(metadata):
        value = getattr(metadata, item.name)
        if isinstance(value, list) and item.name not in _LISTS:  # of licences, say
            setattr(metadata, item.name, ", ".join(map(str, value)))
    for field, value in _sampling(folder).items():
        setattr(metadata, field, value)
    metadata.name = valid_text(metadata.name or called or "model")
    metadata.size_label = metadata.size_label or gguf.size_label(parameters, parameters, 0, 0)
    header.add_type(gguf.GGUFType.MODEL)
    metadata.set_gguf_meta_model(header)


def folder_name(folder: Path) -> str:
    """What a folder is called; in the hub's cache a commit names it, so there its repository."""
    match folder.parts[-3:-1]:
        case (repository, "snapshots") if repository.startswith("models--"):
            return repository.rpartition("--")[2]
    return folder.name


def describe_storage(header: GGUFWriter, weight_type: WeightType) -> None:
    """The last two keys, in the order in which `llama-quantize` leaves them."""
    header.add_quantization_version(gguf.GGML_QUANT_VERSION)
    header.add_file_type(weight_type.file_type)


def _card(folder: Path) -> dict[str, Any]:
    """The front matter of `README.md`: texts and lists of texts. Nothing depends on it."""
    try:
        card = gguf.Metadata.load_model_card(folder)
    except Exception as error:  # of yaml, which is not ours to import
        _log.info("Ignoring the model card of `%s`: %s", folder, error)
        return {}
    return {
        key: value
        for key, value in card.items()
        if is_text(value) or (isinstance(value, list) and all(map(is_text, value)))
    }


def _sampling(folder: Path) -> dict[str, int | float]:
    path = folder / "generation_config.json"
    try:
        values = read_json(path) if path.is_file() else {}
    except CheckpointError as error:  # a hint for sampling is not worth a refusal
        _log.info("Ignoring `%s`: %s", path, error)
        return {}
    return {
        field: kind(values[key])
        for field, (key, kind) in _SAMPLING.items()
        if type(values.get(key)) in (int, kind) and abs(values[key]) < _LARGEST
    }
