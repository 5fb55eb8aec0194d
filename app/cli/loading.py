"""From the name of a model to a loaded pair, the same way for every command."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Self

from app import catalog
from app.cli.client import Client
from app.cli.command import Context
from app.engine import Backend, LoadedModel, LoadParams
from app.library import Pair

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """The options that say which model to load and where."""

    model: str = catalog.DEMO.id
    backend: Backend = Backend.AUTO
    draft: bool = True

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

    @classmethod
    def of(cls, args: Namespace) -> Self:
        return cls(args.model, Backend(args.backend))


@dataclass(frozen=True, slots=True)
class Session:
    """A client whose engine has loaded `pair` as `model`."""

    client: Client
    pair: Pair
    model: LoadedModel
    seconds: float

    @property
    def place(self) -> str:
        return f"{self.model.backend} ({self.model.device.description})"


@contextmanager
def loaded(context: Context, choice: Choice) -> Iterator[Session]:
    """Load the chosen pair into an engine that is closed afterwards."""
    pair = open_pair(context, choice)
    with closing(context.open_engine()) as engine:
        yield load(context, Client(engine), pair, choice.backend)


def open_pair(context: Context, choice: Choice) -> Pair:
    """The files of the chosen model; converts a bundled one on first use."""
    pair = context.library.open(
        choice.model, progress=lambda done: context.console.progress("Converting", done)
    )
    return pair if choice.draft else replace(pair, draft=None)


def load(context: Context, client: Client, pair: Pair, backend: Backend) -> Session:
    done = client.load(
        LoadParams(pair.target, pair.draft, backend),
        lambda fraction: context.console.progress("Loading", fraction),
    )
    if done.model.fallback:
        # A machine without a GPU is nothing to warn of; a GPU that is not taken is.
        level = logging.WARNING if client.has_gpu() else logging.INFO
        _log.log(level, "It runs on the CPU: %s", done.model.fallback)
    return Session(client, pair, done.model, done.seconds)
