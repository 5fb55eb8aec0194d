"""Place and size come back, and rubbish in the file costs nothing but them."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
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
    geometry.restore(second, settings(file))
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
    shown = window(qtbot)
    geometry.restore(shown, settings(file))
    assert (shown.width(), shown.height()) == (500, 400)


def test_a_folder_in_place_of_the_file(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "window.ini").mkdir()
    geometry.restore(window(qtbot), settings(tmp_path / "window.ini"))
