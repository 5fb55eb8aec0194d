"""``slipstream convert``: two Hugging Face checkpoints become two GGUF files."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.cli.command import Context, Job, Result

if TYPE_CHECKING:
    from app.convert import Converted

HELP: Final = "convert a target and perhaps its drafter to GGUF"

TYPES: Final = ("f32", "f16", "bf16", "q8_0", "q6_k", "q5_k_m", "q4_k_m")
RECIPES: Final = ("llama", "slipstream")
"""The values of `app.convert.WeightType` and `Recipe`; importing those takes numpy along."""


def add_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--target", type=Path, required=True, metavar="DIR", help="checkpoint of the target")
    add("--draft", type=Path, metavar="DIR", help="checkpoint of its drafter; without, none")
    add("--out", type=Path, required=True, metavar="DIR", help="where the files go")
    add(
        "--type",
        type=str.lower,
        choices=TYPES,
        default="q4_k_m",
        help="how weights are stored (default: %(default)s)",
    )
    add("--draft-type", type=str.lower, choices=TYPES, help="of the drafter, if not what suits")
    add(
        "--recipe",
        choices=RECIPES,
        help="how a quantised file shares its bytes: llama, as llama-quantize does, or slipstream, "
        "with more for what measured as sensitive (default: the nearer to BF16 at 5 %% more bytes)",
    )


def prepare(args: Namespace) -> Job:
    return _Convert(args.target, args.draft, args.out, args.type, args.draft_type, args.recipe)


@dataclass(frozen=True, slots=True)
class _Convert:
    target: Path
    draft: Path | None
    out: Path
    type: str
    draft_type: str | None
    recipe: str | None

    def __call__(self, context: Context) -> Result:
        from app.convert import Recipe, WeightType, convert_pair

        def on_bytes(done: int, total: int, _tensor: str) -> None:
            context.console.progress("Converting", done / total)

        start = time.monotonic()
        pair = convert_pair(
            self.target,
            self.draft,
            self.out,
            WeightType(self.type),
            recipe=Recipe(self.recipe) if self.recipe else None,
            draft_type=WeightType(self.draft_type) if self.draft_type else None,
            progress=on_bytes,
        )
        seconds = time.monotonic() - start
        value: dict[str, object] = {
            "target": _fields(pair.target),
            "draft": _fields(pair.draft) if pair.draft else None,
            "seconds": seconds,
        }
        lines = [_line(file) for file in (pair.target, pair.draft) if file]
        return Result(value, "\n".join(lines))


def _fields(file: Converted) -> dict[str, object]:
    return {**asdict(file), "path": str(file.path)}


def _line(file: Converted) -> str:
    worst = max(file.errors, key=lambda error: error.error, default=None)
    told = f", largest error {worst.error:.1%} in {worst.name}" if worst else ""
    return f"{file.path}  {file.bytes / 1e6:.1f} MB, recipe {file.recipe}{told}"
