"""From the name of a model to a loaded pair, the same way for every command."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Self

from app import catalog
from app.cli.client import BlockingClient
from app.cli.command import Context
from app.engine import Backend, LoadedModel, LoadParams, preferred_gpu
from app.errors import SlipstreamError
from app.library import Pair

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """The options that say which model to load and where."""

    model: str = catalog.DEMO.id
    backend: Backend = Backend.AUTO
    draft: bool = True
    draft_backend: Backend | None = None

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--model",
            metavar="ID|FOLDER",
            default=catalog.DEMO.id,
            help="a model of `slipstream models`, or a folder with a target*.gguf and "
            "perhaps a draft*.gguf (default: %(default)s)",
        )
        parser.add_argument(
            "--backend",
            choices=[backend.value for backend in Backend],
            default=Backend.AUTO.value,
            help="where it runs; auto takes a GPU that can really be used (default: auto)",
        )
        parser.add_argument(
            "--draft-backend",
            choices=[backend.value for backend in Backend],
            help="where the drafter runs, if not beside the target: slower, for what does not fit",
        )

    @classmethod
    def of(cls, args: Namespace) -> Self:
        draft = Backend(args.draft_backend) if args.draft_backend else None
        return cls(args.model, Backend(args.backend), draft_backend=draft)


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A client whose engine has loaded `pair` as `model`."""

    client: BlockingClient
    pair: Pair
    model: LoadedModel
    seconds: float

    @property
    def place(self) -> str:
        draft = self.model.draft_device
        apart = f", drafter: {draft.kind} ({draft.description})" if draft else ""
        return f"{self.model.backend} ({self.model.device.description}){apart}"


@contextmanager
def loaded(context: Context, choice: Choice) -> Iterator[OpenModel]:
    """Load the chosen pair into an engine that is closed afterwards."""
    pair = open_pair(context, choice)
    with closing(context.open_engine()) as engine:
        yield load(context, BlockingClient(engine.client()), pair, choice)


def open_pair(context: Context, choice: Choice) -> Pair:
    """The files of the chosen model; converts a bundled one on first use."""
    pair = context.library.open(
        choice.model, progress=lambda done: context.console.progress("Converting", done)
    )
    return pair if choice.draft else replace(pair, draft=None)


def load(context: Context, client: BlockingClient, pair: Pair, choice: Choice) -> OpenModel:
    """Loads and measures, so that every answer knows its speed-up, the first one too."""
    done = client.load(
        LoadParams(pair.target, pair.draft, choice.backend, draft_backend=choice.draft_backend),
        lambda fraction: context.console.progress("Loading", fraction),
    )
    if done.model.fallback:
        # A machine without a GPU is nothing to warn of; a GPU that is not taken is.
        gpu = preferred_gpu(client.devices())
        level = logging.WARNING if gpu and gpu.usable else logging.INFO
        _log.log(level, "It runs on the CPU: %s", done.model.fallback)
    try:
        client.measure()
    except SlipstreamError as error:
        _log.warning("The plain rate could not be measured: %s", error)
    return OpenModel(client, pair, done.model, done.seconds)
