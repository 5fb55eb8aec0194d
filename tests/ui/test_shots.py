"""The screenshots can be taken, and show something in either palette."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication

from app.ui.look.palette import DARK, LIGHT
from app.ui.look.theme import Theme
from tests.ui import shots
from tests.ui.models.shots import take_models
from tests.ui.sheet import ACROSS, CELL, VIEWS, sheet

BUILD = Path(__file__).resolve().parents[2] / "build" / "screenshots"


@pytest.mark.slow
def test_screenshots(qapp: QApplication, look: Theme) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    try:
        for palette in (LIGHT, DARK):
            files = shots.take(BUILD, qapp, look, palette.name, real=False)
            assert len(files) == 14
            # beside the column of text, below the header; at the left of the sheet of models
            floating = [file for file in files if "narrow-chats" in file.name]
            check([file for file in files if file not in floating], (264, 60), palette.window)
            check(floating, (4, 600), palette.surface)
            if palette is LIGHT:  # one palette is enough to see that they can be taken
                continue
            files = take_models(BUILD, look, palette.name, shots.wait)
            assert len(files) == 19
            check(files, (264, 560), palette.window)
    finally:
        look.choose("light")


def check(files: list[Path], place: tuple[int, int], ground: str) -> None:
    for file in files:
        image = QImage(str(file))
        assert image.width() >= 400
        assert image.pixelColor(*place).name().upper() == ground, file.name


def test_all_views_in_one_picture(qapp: QApplication, tmp_path: Path) -> None:
    for at, view in enumerate(VIEWS):
        shot = QImage(1280, 800, QImage.Format.Format_RGB32)
        shot.fill(QColor(8 * at, 0, 0))
        shot.save(str(tmp_path / f"{view}-light.png"))
    whole = sheet(tmp_path, "light")
    cells = [
        whole.pixelColor(
            at % ACROSS * CELL.width() + CELL.width() // 2,
            at // ACROSS * CELL.height() + CELL.height() // 2,
        ).red()
        for at in range(len(VIEWS))
    ]
    assert cells == [8 * at for at in range(len(VIEWS))]
    with pytest.raises(SystemExit, match="empty-dark"):
        sheet(tmp_path, "dark")
