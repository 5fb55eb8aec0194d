"""``slipstream devices``: what the engine can really use, and why not the rest."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Final

from app.binding import backends_folder, install_backend
from app.cli.client import BlockingClient
from app.cli.command import Context, Job, Result
from app.engine import DeviceInfo

HELP: Final = "list the devices and whether they can be used"

_FIELDS: Final = (
    *("name", "kind", "backend", "description", "memory_total", "memory_free"),
    *("usable", "reason"),
)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--add", type=Path, metavar="FILE", help="install a GPU backend from its archive first"
    )


def prepare(args: Namespace) -> Job:
    def run(context: Context) -> Result:
        if args.add:
            added = install_backend(args.add, backends_folder())
            context.console.note(f"Installed {added.library} for {', '.join(added.architectures)}.")
        return _listed(context)

    return run


def _listed(context: Context) -> Result:
    with closing(context.open_engine()) as engine:
        devices = BlockingClient(engine.client()).devices()
    rows = [{name: asdict(d)[name] for name in _FIELDS} for d in devices]
    return Result({"devices": rows}, "\n".join(map(_line, devices)))


def _line(device: DeviceInfo) -> str:
    memory = ""
    if device.memory_total:
        free, total = (size / 2**30 for size in (device.memory_free, device.memory_total))
        memory = f", {free:.1f} of {total:.1f} GiB free"
    verdict = "usable" if device.usable else f"not usable: {device.reason}"
    return f"{device.name}  {device.description} ({device.kind}{memory})  {verdict}"
