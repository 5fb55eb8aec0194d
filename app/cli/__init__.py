"""The command line: every subcommand is one module with three public names.

`HELP`, `add_options(parser)` and `prepare(args)`, which turns the parsed options into
a job, or raises `OptionError` for a usage error. The job gets a `Context` (library,
engine, console) and gives a `Result`; nothing else here prints.
"""

from app.cli.tool import main

__all__ = ["main"]
