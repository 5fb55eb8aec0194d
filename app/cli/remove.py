"""``slipstream remove``: a model goes to the trash."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Final

from app.cli.command import Context, Job, Result

HELP: Final = "move a model to the trash"


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="as `slipstream models` names it")


def prepare(args: Namespace) -> Job:
    def run(context: Context) -> Result:
        row = context.library.remove(args.id)
        value: dict[str, object] = {"id": row.id, "path": str(row.path), "bytes": row.bytes}
        return Result(value, f"{row.title} is in the trash.")

    return run
