"""What a subcommand is given and what it gives back."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from app.cli.console import Console
from app.engine import EngineDoor
from app.library import Library

OK = 0
FAILED = 1
INTERRUPTED = 130  # as shells count a process that Ctrl-C ended


@dataclass(frozen=True, slots=True)
class Context:
    """What jobs work with; tests put a scripted engine and library here."""

    library: Library
    open_engine: Callable[[], EngineDoor]
    console: Console


@dataclass(frozen=True, slots=True)
class Result:
    """`json` is the whole result, `text` what is left to print for people."""

    json: dict[str, object]
    text: str = ""
    status: int = OK


Job = Callable[[Context], Result]


class Command(Protocol):
    """What each module of a subcommand has."""

    @property
    def HELP(self) -> str: ...  # noqa: N802 - a constant of the module

    def add_options(self, parser: ArgumentParser) -> None: ...

    def prepare(self, args: Namespace) -> Job: ...
