"""``slipstream`` and ``python -m app``: the window, or one command.

Without arguments the window opens; Qt is imported only then. Everything else is the
command line's.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    if arguments:
        from app.cli import main as run_command

        return run_command(arguments)
    # What a start makes stays: looking for cycles in it, a hundred times, takes a twentieth of the
    # start. `run` has it looked again for those that come later.
    gc.disable()
    from app.ui.application import run as open_window

    return open_window()


if __name__ == "__main__":
    sys.exit(main())
