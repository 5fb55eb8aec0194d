"""The tool: options, then the job, then one result and an exit status.

0 is a success, 1 a failure, 2 a usage error, 130 the end by Ctrl-C.
"""

from __future__ import annotations

import logging
from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from app import log, moving, paths, settings
from app.cli import ask, bench, convert, devices, models, pull, remove, selftest
from app.cli.command import FAILED, INTERRUPTED, Command, Context
from app.cli.console import Console
from app.engine import EngineDoor
from app.errors import OptionError, SlipstreamError
from app.library import Library

COMMANDS: Final[Mapping[str, Command]] = {
    "ask": ask,
    "pull": pull,
    "convert": convert,
    "models": models,
    "remove": remove,
    "devices": devices,
    "bench": bench,
    "selftest": selftest,
}

_log = logging.getLogger(__name__)


def open_engine() -> EngineDoor:
    from app.engine import Engine  # only commands that need it load the native library

    return Engine()


def main(
    argv: Sequence[str] | None = None,
    *,
    engine: Callable[[], EngineDoor] = open_engine,
    library: Library | None = None,
) -> int:
    """Run one command; `SystemExit` is argparse's, for ``--help`` and usage errors."""
    args = build_parser().parse_args(argv)
    console = Console(args.json)
    log.start(paths.log_file(), args.verbose)
    try:
        return _told(args, console, lambda: Context(library or _users(), engine, console))
    except BrokenPipeError:
        return FAILED
    finally:
        console.close()
        log.stop()


def build_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="slipstream",
        description="A chat with a local model that answers faster by drafting. Without a command "
        "the window opens; with FILE.slipstream.json, which was exported, it takes in those chats.",
        epilog="`slipstream COMMAND --help` tells of its options.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, help="show the versions of app and engine")
    common = ArgumentParser(add_help=False, allow_abbrev=False)
    common.add_argument(
        "--json", action="store_true", help="print exactly one JSON object on stdout"
    )
    common.add_argument(
        "-v", "--verbose", action="count", default=0, help="more diagnostics on stderr; -vv: all"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        about = f"{command.HELP[0].upper()}{command.HELP[1:]}."
        one = commands.add_parser(
            name, help=command.HELP, description=about, parents=[common], allow_abbrev=False
        )
        command.add_options(one)
        one.set_defaults(command=command, usage=one)
    return parser


class _Version(Action):
    """Looks them up only where they are asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, SUPPRESS, nargs=0, **options)

    def __call__(self, parser: ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"slipstream {version('slipstream')} (engine {version('llama-cpp-python')})")
        parser.exit()


def _users() -> Library:
    moving.use_known()
    return Library.of_user(settings.load(paths.settings_file()).settings.models_folder)


def _told(args: Namespace, console: Console, context: Callable[[], Context]) -> int:
    """The exit status. What went wrong is told, to a reader that may be gone by then."""
    try:
        return _run(args, context())
    except SlipstreamError as error:
        console.failure(type(error).__name__, error.message, error.remedy)
        return FAILED
    except KeyboardInterrupt:
        console.failure("Cancelled", "Cancelled by Ctrl-C.", "")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        _log.exception("unexpected")
        message = f"Slipstream failed unexpectedly: {error}"
        remedy = f"Please report it with the end of `{paths.log_file()}`."
        console.failure(type(error).__name__, message, remedy)
        return FAILED


def _run(args: Namespace, context: Context) -> int:
    command: Command = args.command
    try:
        job = command.prepare(args)
    except OptionError as error:
        args.usage.error(str(error))
    result = job(context)
    context.console.result(result.json, result.text)
    return result.status
