"""The app as it is installed, out of a package that is made of the engine at hand: what
`dev.py smoke` does in bare systems, as far as there is time for it on each change.

It runs on this system, from where the package was unpacked, and finds no other program in its
PATH: neither Python nor what a checkout has.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import dev
from installers import smoke
from tests.conftest import dev_native
from tests.ui.desktop.conftest import OpenDesktop, open_desktop  # noqa: F401 (a fixture)
from tests.ui.desktop.session import Desktop
from tests.ui.desktop.tree import Bus

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),  # one quiet minute, most of it PyInstaller's
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="made on Linux"),
]
REQUIRED = "SLIPSTREAM_REQUIRE_PACKAGE"  # set where a skipped test would hide a fault: in CI


class Unpacked(smoke.System):
    """The package below a folder, without a chroot around it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, root)
        (root / "root").mkdir()
        self.home = root / smoke.HOME.lstrip("/")
        self.home.mkdir(parents=True)

    def command(self, command: Sequence[str], *, user: bool = False) -> list[str]:
        return list(command)

    def inside(self, path: Path) -> str:
        return str(path)

    def environment(self, user: bool) -> dict[str, str]:
        path = str(self.root / "usr/bin") if user else os.environ["PATH"]
        return {"PATH": path, "HOME": str(self.home)}


def cannot(why: str) -> None:
    if os.environ.get(REQUIRED):
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `dev.py package` tells of it."""
    try:
        dev.optional_packages(dev.PACKAGING)
    except dev.Unavailable as lacks:
        cannot(str(lacks))
    if not shutil.which("dpkg-deb"):
        cannot("there is no dpkg-deb: packages are made on Debian")
    dist = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "dev.py", "package", "--quick", "--no-vulkan"]
    command += ["--dist", str(dist), "--engine", str(dev_native())]
    done = subprocess.run(command, cwd=dev.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.fixture(scope="module")
def system(made: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Unpacked:
    (package,) = (file for file in made["archives"] if file.endswith(".deb"))
    root = tmp_path_factory.mktemp("system")
    subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    return Unpacked(root)


class Screen(smoke.Screen):
    """A desktop of the tests, of which the app is told no folder of the user's."""

    def __init__(self, desktop: Desktop) -> None:
        kept = ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "PATH")
        self.environment = {name: desktop.environment[name] for name in kept}
        self.environment["QT_LINUX_ACCESSIBILITY_ALWAYS_ON"] = "1"
        self.bus = Bus(desktop.environment["DBUS_SESSION_BUS_ADDRESS"])


@pytest.fixture
def holds() -> Iterator[smoke.Report]:
    """A report in which nothing may have failed."""
    report = smoke.Report("here")
    yield report
    assert report.checks
    assert not [check for check in report.checks if not check["ok"]]


def test_its_libraries_are_whole(system: Unpacked, holds: smoke.Report) -> None:
    smoke.look_at_libraries(holds, system)


def test_its_commands_answer(system: Unpacked, holds: smoke.Report) -> None:
    smoke.commands(holds, system)


def test_its_window_answers_a_suggestion_and_ends(
    system: Unpacked,
    holds: smoke.Report,
    open_desktop: OpenDesktop,  # noqa: F811
) -> None:
    """Started as a desktop does, with closed streams; the mouse clicks."""
    desktop = open_desktop("at-spi-bus-launcher")
    desktop.start(["at-spi-bus-launcher", "--launch-immediately"])
    screen = Screen(desktop)
    try:
        smoke.first_start(holds, system, screen, None)
    finally:
        screen.bus.close()
    assert (system.home / smoke.XDG[2] / "chats.db").is_file()


def test_it_is_as_large_as_is_told(made: dict[str, Any]) -> None:
    """With one variant of the CPU's backend; the other thirteen and Vulkan's are 60 MB."""
    assert made["bytes"] < 250e6 - 60e6
    assert made["bytes"] == sum(made["parts"].values())
    assert not [part for part in made["parts"] if "Vulkan" in part]
