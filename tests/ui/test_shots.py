"""The screenshots can be taken, and show something in either palette."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from app.ui.look.palette import DARK, LIGHT
from app.ui.look.theme import Theme
from tests.ui import shots

BUILD = Path(__file__).resolve().parents[2] / "build" / "screenshots"


@pytest.mark.slow
def test_screenshots(qapp: QApplication, look: Theme) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    try:
        for palette in (LIGHT, DARK):
            files = shots.take(BUILD, qapp, look, palette.name, real=False)
            assert len(files) == 6
            for file in files:
                image = QImage(str(file))
                assert image.width() >= 640
                # beside the column of text, below the header
                ground = image.pixelColor(264, 60).name().upper()
                assert ground == palette.window, file.name
    finally:
        look.choose("light")
