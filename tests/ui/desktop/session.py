"""A desktop of a test's own: an X server, a session bus, and what listens to both.

The window runs there as a process, as a user has it: nothing of Qt's test tools is between a
key and what it does. Nothing reaches the desktop on which the tests run, nor its user's files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

ROOT: Final = Path(__file__).resolve().parents[3]
NEEDS: Final = ("Xvfb", "xdotool", "dbus-daemon")
PATIENCE_S: Final = 60.0
"""For what comes soon on any machine, however busy."""

T = TypeVar("T")


def lacks(programs: Sequence[str] = ()) -> str:
    """What is not installed, in words; empty where all is."""
    missing = [name for name in (*NEEDS, *programs) if found(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


def found(program: str) -> str | None:
    """Its path; of what is named by folders, no program, the one under /usr."""
    if "/" in program:
        path = Path("/usr", program)
        return str(path) if path.exists() else None
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/libexec:/usr/lib/at-spi2-core")


def until(look: Callable[[], T], what: str, patience_s: float = PATIENCE_S) -> T:
    """The first true value that `look` gives."""
    deadline = time.monotonic() + patience_s
    while not (value := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"did not come: {what}")
        time.sleep(0.02)
    return value


class Desktop:
    """`scale` is device pixels a pixel, `size` the screen's in device pixels."""

    def __init__(
        self, folder: Path, size: tuple[int, int] = (1280, 800), scale: float = 1.0
    ) -> None:
        self._running: list[subprocess.Popen[str]] = []
        self.folder, self.size = folder, size
        home, runtime = folder / "home", folder / "run"
        home.mkdir(parents=True)
        runtime.mkdir(mode=0o700)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "XDG_DATA_HOME": str(home / ".local/share"),
            "XDG_RUNTIME_DIR": str(runtime),
            "LANG": "C.UTF-8",
            "SLIPSTREAM_HOME": str(folder / "slipstream"),
            "QT_QPA_PLATFORM": "xcb",
            "QT_SCALE_FACTOR": str(scale),
            "GSETTINGS_BACKEND": "memory",
            "PYTHONPATH": str(ROOT),
        }
        read, write = os.pipe()
        screen = f"{size[0]}x{size[1]}x24"
        command = ["Xvfb", "-displayfd", str(write), "-screen", "0", screen, "-nolisten", "tcp"]
        self.start(command, pass_fds=(write,))
        os.close(write)
        with os.fdopen(read) as told:
            self.environment["DISPLAY"] = f":{told.readline().strip()}"
        bus = self.start(
            ["dbus-daemon", "--session", "--nofork", "--print-address"], stdout=subprocess.PIPE
        )
        assert bus.stdout is not None
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()

    def __enter__(self) -> Desktop:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in reversed(self._running):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """It ends with the desktop."""
        program = found(command[0]) or command[0]
        log = (self.folder / "desktop.log").open("a", encoding="utf-8")
        with log:
            process = subprocess.Popen(
                [program, *command[1:]],
                env=self.environment,
                stderr=log,
                stdout=options.pop("stdout", log),
                text=True,
                cwd=ROOT,
                **options,
            )
        self._running.append(process)
        return process

    def xdotool(self, *arguments: str) -> str:
        done = subprocess.run(
            ["xdotool", *arguments], env=self.environment, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def window(self, *options: str) -> Window:
        """Slipstream's, with the focus; `options` as of `tests.ui.desktop.app`."""
        told = self.folder / f"told-{len(self._running)}"
        self.environment["SLIPSTREAM_TOLD"] = str(told)
        process = self.start([sys.executable, "-m", "tests.ui.desktop.app", *options])
        window = Window(self, told, process)
        window.wait(lambda state: state["ready"], "a window with a model")
        window.focus()
        return window


class Window:
    """What it shows, as the process tells it, and keys and clicks as a user makes them."""

    def __init__(self, desktop: Desktop, told: Path, process: subprocess.Popen[str]) -> None:
        self._desktop, self._told = desktop, told
        self.process = process

    @property
    def state(self) -> dict[str, Any]:
        """The last that was told; empty before that."""
        try:
            lines = self._told.read_text(encoding="utf-8").splitlines()
            state: dict[str, Any] = json.loads(lines[-1])
        except (OSError, IndexError, ValueError):
            return {}
        return state

    def wait(self, holds: Callable[[dict[str, Any]], Any], what: str) -> dict[str, Any]:
        try:
            return until(lambda: ((s := self.state) and holds(s) and s) or {}, what)
        except AssertionError as error:
            state = self.state
            state["messages"] = [text[:40] for text in state.get("messages", [])]
            raise AssertionError(f"{error}; {state}") from None

    def focus(self) -> None:
        """Without a window manager nobody else gives it."""
        id_ = until(
            lambda: self._desktop.xdotool("search", "--sync", "--name", "^Slipstream$"), "a window"
        ).split()[0]
        self._desktop.xdotool("windowfocus", "--sync", id_)
        self.wait(lambda state: state["active"], "the focus")

    def keys(self, *names: str) -> None:
        self._desktop.xdotool("key", "--delay", "20", *names)

    def type(self, text: str) -> None:
        self._desktop.xdotool("type", "--delay", "15", text)

    def click(self, name: str) -> None:
        """On the middle of what has this accessible name, or this text, once it stands still."""
        before: list[int] = []

        def rests(state: dict[str, Any]) -> bool:
            nonlocal before
            last, before = before, state["places"].get(name, [])
            time.sleep(0.1)  # longer than the window takes to tell
            return bool(before) and before == last

        place = self.wait(rests, name)["places"][name]
        self._desktop.xdotool("mousemove", str(place[0]), str(place[1]), "click", "1")
