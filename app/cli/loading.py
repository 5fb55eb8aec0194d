"""From the name of a model to a loaded pair, the same way for every command."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

from app import limits
from app.cli.client import BlockingClient
from app.cli.command import Context
from app.engine import Backend, KvType, LoadedModel, preferred_gpu
from app.errors import SlipstreamError
from app.library import Pair
from app.loading import LoadChoice

_log = logging.getLogger(__name__)


_DEFAULT: Final = LoadChoice()


def add_options(parser: ArgumentParser) -> None:
    """The options that say which model to load, and where."""
    add = parser.add_argument
    add(
        "--model",
        metavar="ID|FOLDER",
        default=_DEFAULT.model,
        help="a model of `slipstream models`, or a folder with a target*.gguf and "
        "perhaps a draft*.gguf (default: %(default)s)",
    )
    add(
        "--backend",
        choices=[backend.value for backend in Backend],
        default=_DEFAULT.backend.value,
        help="where it runs; auto takes a GPU that can really be used (default: %(default)s)",
    )
    add(
        "--device",
        metavar="NAME",
        help="this one of `slipstream devices` and no other, in place of --backend",
    )
    add(
        "--draft-backend",
        choices=[backend.value for backend in Backend],
        help="where the drafter runs, if not beside the target: slower, for what does not fit",
    )
    add(
        "--kv-type",
        choices=[kind.value for kind in KvType],
        help="how keys and values are kept: q8_0 takes half of f16's memory, at some loss",
    )
    add(
        "--ctx",
        type=int,
        metavar="N",
        default=_DEFAULT.n_ctx,
        help="tokens that a chat may have, prompt and answer together (default: as many as fit, "
        "up to 32768)",
    )


def choice_of(args: Namespace) -> LoadChoice:
    """What was chosen by the options of `add_options`. Raises `OptionError`."""
    if args.ctx is not None:
        limits.check("n_ctx", args.ctx, "--ctx")
    return LoadChoice(
        model=args.model,
        backend=Backend(args.backend),
        draft_backend=Backend(args.draft_backend) if args.draft_backend else None,
        kv_type=KvType(args.kv_type) if args.kv_type else None,
        device=args.device,
        n_ctx=args.ctx,
    )


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
def loaded(context: Context, choice: LoadChoice) -> Iterator[OpenModel]:
    """Load the chosen pair into an engine that is closed afterwards."""
    pair = open_pair(context, choice)
    with closing(context.open_engine()) as engine:
        yield load(context, BlockingClient(engine.client()), pair, choice)


def open_pair(context: Context, choice: LoadChoice) -> Pair:
    """The files of the chosen model; converts a bundled one on first use."""
    return context.library.open(
        choice.model, progress=lambda done: context.console.progress("Converting", done)
    )


def load(
    context: Context,
    client: BlockingClient,
    pair: Pair,
    choice: LoadChoice,
    *,
    measure: bool = True,
) -> OpenModel:
    """Loads and measures, so that every answer knows its speed-up, the first one too."""
    done = client.load(
        choice.params(pair),
        lambda fraction: context.console.progress("Loading", fraction),
    )
    if done.model.fallback:
        # A machine without a GPU is nothing to warn of; a GPU that is not taken is.
        gpu = preferred_gpu(client.devices())
        level = logging.WARNING if gpu and gpu.usable else logging.INFO
        _log.log(level, "It runs on the CPU: %s", done.model.fallback)
    if done.model.repairs:
        _log.warning("`%s`: %s", pair.target.name, done.model.repairs)
    try:
        if measure:
            client.measure()
    except SlipstreamError as error:
        _log.warning("The plain rate could not be measured: %s", error)
    return OpenModel(client, pair, done.model, done.seconds)
