"""``slipstream models``: the models that are here, and those that could be."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Final

from app.cli.command import Context, Job, Result
from app.library import ModelStatus

HELP: Final = "list the models"


def add_options(parser: ArgumentParser) -> None:
    """There are none but the common ones."""


def prepare(args: Namespace) -> Job:
    return _run


def _run(context: Context) -> Result:
    models = context.library.models()
    return Result({"models": [_fields(m) for m in models]}, "\n".join(map(_line, models)))


def _fields(model: ModelStatus) -> dict[str, object]:
    return {
        "id": model.id,
        "title": model.title,
        "state": model.state.value,
        "reason": model.reason,
        "path": None if model.path is None else str(model.path),
        "bytes": model.bytes,
    }


def _line(model: ModelStatus) -> str:
    size = f", {model.bytes / 1e6:.0f} MB" if model.bytes else ""
    reason = f"  {model.reason}" if model.reason else ""
    return f"{model.id}  {model.title} ({model.state.value}{size}){reason}"
