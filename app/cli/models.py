"""``slipstream models``: the models that are here, and those that could be."""

from __future__ import annotations

import datetime
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import Final

from app.cli.command import FAILED, OK, Context, Job, Result
from app.errors import SlipstreamError
from app.library import ModelState, ModelStatus

HELP: Final = "list the models"


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--verify", metavar="ID", help="compare the files of a model with its passport"
    )


def prepare(args: Namespace) -> Job:
    if args.verify is not None:
        return lambda context: _verify(context, args.verify)
    return _run


def _run(context: Context) -> Result:
    models = context.library.models()
    if problem := context.library.problem:
        context.console.note(problem)
    return Result(
        {"folder": str(context.library.root), "models": [_fields(m) for m in models]},
        "\n".join(map(_line, models)),
    )


def _verify(context: Context, model: str) -> Result:
    try:
        context.library.verify(model, lambda done: context.console.progress("Verifying", done))
    except SlipstreamError as error:
        value: dict[str, object] = {"id": model, "ok": False, "detail": str(error)}
        return Result(value, f"FAILED  {error}", FAILED)
    return Result({"id": model, "ok": True, "detail": ""}, f"ok      {model}", OK)


def _fields(model: ModelStatus) -> dict[str, object]:
    return {
        "id": model.id,
        "title": model.title,
        "state": model.state.value,
        "reason": model.reason,
        "path": None if model.path is None else str(model.path),
        "bytes": model.bytes,
        "type": None if model.passport is None else model.passport.type,
        "used": None if model.used is None else _time(model.used),
        "passport": None if model.passport is None else asdict(model.passport),
    }


def _line(model: ModelStatus) -> str:
    parts = [model.state.value]
    if model.bytes:
        parts.append(f"{model.bytes / 1e6:.0f} MB")
    if model.passport is not None:
        parts.append(model.passport.type.upper())
    reason = f"  {model.reason}" if model.reason else ""
    if model.state is ModelState.AVAILABLE:
        reason = f"  `slipstream pull {model.id}` gets it."
    return f"{model.id}  {model.title} ({', '.join(parts)}){reason}"


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds")
