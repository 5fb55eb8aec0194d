"""What a model must consist of, compared with what a checkpoint has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gguf.constants import GGMLQuantizationType

from app.convert.mix import Recipe, choose_kinds, order
from app.convert.shard import DTYPES, StoredTensor
from app.convert.weights import Array, Shape, WeightType, bytes_of
from app.errors import CheckpointError, UnsupportedModelError

Step = Callable[[Array], Array]

_ONE_REVISION: Final = (
    "Download the model again; weights and `config.json` must be of one revision."
)
_NAMED: Final = 5  # names in a message; the rest is counted


@dataclass(frozen=True, slots=True)
class Expected:
    """A tensor of the model, under its name in the checkpoint and in GGUF."""

    source: str
    name: str
    shape: Shape
    arrange: Step | None = None  # moves whole rows, columns or dimensions; any dtype
    compute: Step | None = None  # works on each number by itself; floats
    stored_shape: Shape | None = None  # in GGUF, where it is another
    optional: bool = False
    if_missing: str = ""  # what to do then, where that is known better


@dataclass(frozen=True, slots=True)
class Planned:
    """A tensor that will be written: from where, how, and as what."""

    source: StoredTensor
    name: str
    shape: Shape
    kind: GGMLQuantizationType
    arrange: Step | None
    compute: Step | None

    @property
    def bytes(self) -> int:
        return bytes_of(self.shape, self.kind)


def plan_tensors(
    expected: Iterable[Expected],
    found: Mapping[str, StoredTensor],
    weight_type: WeightType,
    recipe: Recipe,
    folder: Path,
) -> list[Planned]:
    """One entry for each of `found`, in llama.cpp's order of layers.

    Raises `CheckpointError` if a tensor is missing, misshapen or unknown, and
    `UnsupportedModelError` if its numbers are of a kind that is not read.
    """
    outline = {item.source: item for item in expected}
    missing = [n for n, item in outline.items() if n not in found and not item.optional]
    if missing:
        remedies = {outline[name].if_missing for name in missing}
        raise _mismatch(folder, "lacks", missing, remedies.pop() if len(remedies) == 1 else "")
    unknown = [name for name in found if name not in outline]
    if unknown:
        raise _mismatch(folder, "has, unexpectedly,", unknown)
    for name, tensor in found.items():
        _check(outline[name], tensor)
    pairs = sorted(((outline[n], t) for n, t in found.items()), key=lambda p: order(p[0].name))
    shapes = [(item.name, item.stored_shape or item.shape) for item, _ in pairs]
    kinds = choose_kinds(shapes, weight_type, recipe)
    return [
        Planned(tensor, name, shape, kind, item.arrange, item.compute)
        for (item, tensor), (name, shape), kind in zip(pairs, shapes, kinds, strict=True)
    ]


def _check(item: Expected, tensor: StoredTensor) -> None:
    if tensor.shape != item.shape and sorted(tensor.shape) == sorted(item.shape):
        raise UnsupportedModelError(
            f"The tensor `{tensor.name}` in `{tensor.file}` has the shape {list(tensor.shape)}, "
            f"which is {list(item.shape)} in another order: it was converted for another program.",
            remedy="Choose the original model; MLX, for one, stores it so.",
        )
    if tensor.shape != item.shape:
        raise CheckpointError(
            f"The tensor `{tensor.name}` in `{tensor.file}` has the shape {list(tensor.shape)}; "
            f"`config.json` asks for {list(item.shape)}.",
            remedy=_ONE_REVISION,
        )
    if tensor.dtype not in DTYPES:
        raise UnsupportedModelError(
            f"The tensor `{tensor.name}` in `{tensor.file}` is of the type `{tensor.dtype}`.",
            remedy=f"Choose a model stored as {', '.join(DTYPES)}.",
        )


def _mismatch(folder: Path, verb: str, names: list[str], remedy: str = "") -> CheckpointError:
    listed = ", ".join(f"`{name}`" for name in names[:_NAMED])
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return CheckpointError(
        f"The model in `{folder}` {verb} the tensors {listed}{rest}.",
        remedy=remedy or _ONE_REVISION,
    )
