"""Place and size come back, and rubbish in the file costs nothing but them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.ui.window import geometry


def settings(file: Path) -> QSettings:
    return QSettings(str(file), QSettings.Format.IniFormat)


def window(qtbot: QtBot) -> QWidget:
    result = QWidget()
    qtbot.addWidget(result)
    result.resize(500, 400)
    return result


def test_it_comes_back(qtbot: QtBot, tmp_path: Path) -> None:
    first, second = window(qtbot), window(qtbot)
    first.resize(640, 480)
    file = tmp_path / "window.ini"
    geometry.save(first, settings(file))
    geometry.place(second, settings(file))
    assert (second.width(), second.height()) == (640, 480)


@pytest.mark.qt_log_ignore("QVariant::load", "Trying to construct")
@pytest.mark.parametrize(
    "content",
    [
        b"geometry=oops",
        b"geometry=@ByteArray(oops)",
        b"geometry=@Variant(oops)",
        b"geometry=@Variant(\\0\\0\\0\\x7f\\0\\0)",
        b"geometry=@Invalid()",
        b"geometry=@Rect(1 2 3 4)",
        b"geometry=1, 2, 3",
        b"geometry=",
        b"[geometry]\na=1",
        b"\x00\xff\xfe[[[",
        b"",
    ],
)
def test_rubbish_is_left_alone(qtbot: QtBot, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "window.ini"
    file.write_bytes(b"[General]\n" + content)
    shown, plain = window(qtbot), window(qtbot)
    geometry.place(shown, settings(file))
    geometry.first(plain)
    assert shown.geometry() == plain.geometry()


def test_a_folder_in_place_of_the_file(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "window.ini").mkdir()
    geometry.place(window(qtbot), settings(tmp_path / "window.ini"))


def test_a_screen_that_is_gone(qtbot: QtBot, tmp_path: Path) -> None:
    """Half of the window was on a second screen, at the right of the one that is left."""
    gone, shown = window(qtbot), window(qtbot)
    screen = QGuiApplication.primaryScreen().geometry()
    gone.setGeometry(screen.right() - 100, 50, 400, 300)
    gone.show()
    file = tmp_path / "window.ini"
    geometry.save(gone, settings(file))
    gone.hide()
    geometry.place(shown, settings(file))
    assert screen.contains(shown.geometry())


def run_on(screen: str, scale: str, tmp_path: Path) -> str:
    """Open the window in a process of its own, on a screen of this size; what it tells."""
    width, height = screen.split("x")
    config = tmp_path / "screen.json"
    config.write_text(
        '{"synchronousWindowSystemEvents": true, "screens": [{"name": "one", "x": 0, "y": 0, '
        f'"width": {width}, "height": {height}, "logicalDpi": 96, "dpr": 1}}]}}'
    )
    environment = {
        **os.environ,
        "QT_QPA_PLATFORM": f"offscreen:configfile={config}",
        "QT_SCALE_FACTOR": scale,
        "SLIPSTREAM_HOME": str(tmp_path),
    }
    command = [sys.executable, "-m", "tests.ui.window.fits"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("screen", "scale"),
    [("1366x768", "1"), ("1366x768", "1.5"), ("1366x768", "2"), ("1600x1000", "1.5")],
)
def test_the_first_window_fits_the_screen(tmp_path: Path, screen: str, scale: str) -> None:
    """And all that it holds is inside of it: nothing is cut at its edges."""
    assert run_on(screen, scale, tmp_path).splitlines() == ["fits"]
