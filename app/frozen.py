"""The installed app: one program, made by PyInstaller, that is window, command line and each of
their children. There is no interpreter beside it that could be asked for a module.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

APP_ID: Final = "invalid.slipstream.Slipstream"
"""By which desktops know the app: its entry, its icon and its metadata have this name.

Below a domain that nobody can own: the project has no page yet."""

IS_FROZEN: Final = bool(getattr(sys, "frozen", False))

REPAIR: Final = "Install Slipstream anew." if IS_FROZEN else "Run `python3 dev.py setup`."
"""What is to be done where a part of ours is missing or does not fit the rest."""

# Windows' window has no console to speak through; the program beside it that has one is the tool.
_WINDOWED: Final = "slipstreamw.exe"


def command_line() -> tuple[str, ...]:
    """What starts this Slipstream's command line again; options and commands follow."""
    if not IS_FROZEN:
        return (sys.executable, "-m", "app")
    program = Path(sys.executable)
    if program.name == _WINDOWED:
        program = program.with_name("slipstream.exe")
    return (str(program),)


def prepare(arguments: Sequence[str]) -> None:
    """What a program has to do before it is anything else; a child of ours does not come back.

    Streams that whoever started us has closed are opened into nowhere: else the next file that is
    opened, chats among them, would get what native code says on stderr.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                opened = os.open(os.devnull, os.O_RDWR)  # takes the lowest that is free: this one
                os.set_inheritable(opened, True)  # programs that we start need one as well
    if not IS_FROZEN:
        return
    # PyInstaller's, for this process alone: a browser that we open must not load our libraries,
    # nor a Qt program our plugins, whose folder it names without keeping what was named before.
    # Qt finds its own beside its libraries.
    for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):
        if (before := os.environ.pop(f"{name}_ORIG", None)) is not None:
            os.environ[name] = before
        else:
            os.environ.pop(name, None)
    for name in ("QT_PLUGIN_PATH", "QML2_IMPORT_PATH"):
        os.environ.pop(name, None)
    if arguments[:1] == ["--multiprocessing-fork"] or "-c" in arguments:
        from multiprocessing import freeze_support

        freeze_support()
