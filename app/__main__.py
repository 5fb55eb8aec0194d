"""``slipstream`` and ``python -m app``: the window, or one command.

Without arguments the window opens, or with chats that were exported as JSON; Qt is imported
only then. Everything else is the command line's.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path

from app import frozen


def main(argv: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    frozen.prepare(arguments)
    chats = arguments if arguments and _is_chats(arguments[0]) else ()
    if arguments and not chats:
        from app.cli import main as run_command

        return run_command(arguments)
    # What a start makes stays: looking for cycles in it, a hundred times, takes a twentieth of the
    # start. `run` has it looked again for those that come later.
    gc.disable()
    from app.ui.application import run as open_window

    return open_window(chats=[Path(chat).absolute() for chat in chats])


def _is_chats(argument: str) -> bool:
    """As a desktop opens exported chats, whatever they were renamed to; no command is so named."""
    path = Path(argument)
    return path.suffix.lower() == ".json" or (path.is_absolute() and path.is_file())


if __name__ == "__main__":
    sys.exit(main())
