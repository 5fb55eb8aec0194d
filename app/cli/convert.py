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

HELP: Final = "convert a target and its drafter to GGUF"

TYPES: Final = ("f32", "f16", "bf16", "q8_0")
"""The values of `app.convert.WeightType`; importing that takes numpy along."""


def add_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--target", type=Path, required=True, metavar="DIR", help="checkpoint of the target")
    add("--draft", type=Path, required=True, metavar="DIR", help="checkpoint of its drafter")
    add("--out", type=Path, required=True, metavar="DIR", help="where both files go")
    add(
        "--type",
        type=str.lower,
        choices=TYPES,
        default="q8_0",
        help="how weights are stored (default: %(default)s)",
    )


def prepare(args: Namespace) -> Job:
    return _Convert(args.target, args.draft, args.out, args.type)


@dataclass(frozen=True, slots=True)
class _Convert:
    target: Path
    draft: Path
    out: Path
    type: str

    def __call__(self, context: Context) -> Result:
        from app.convert import WeightType, convert_pair

        def on_bytes(done: int, total: int, _tensor: str) -> None:
            context.console.progress("Converting", done / total)

        start = time.monotonic()
        pair = convert_pair(
            self.target, self.draft, self.out, WeightType(self.type), progress=on_bytes
        )
        seconds = time.monotonic() - start
        value: dict[str, object] = {
            "target": _fields(pair.target),
            "draft": _fields(pair.draft),
            "seconds": seconds,
        }
        lines = [f"{file.path}  {file.bytes / 1e6:.1f} MB" for file in (pair.target, pair.draft)]
        return Result(value, "\n".join(lines))


def _fields(file: Converted) -> dict[str, object]:
    return {**asdict(file), "path": str(file.path)}
