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
    # A desktop opens an exported chat so; no command has such a name.
    chats = arguments if arguments and arguments[0].lower().endswith(".json") else ()
    if arguments and not chats:
        from app.cli import main as run_command

        return run_command(arguments)
    # What a start makes stays: looking for cycles in it, a hundred times, takes a twentieth of the
    # start. `run` has it looked again for those that come later.
    gc.disable()
    from app.ui.application import run as open_window

    return open_window(chats=[Path(chat).absolute() for chat in chats])


if __name__ == "__main__":
    sys.exit(main())
