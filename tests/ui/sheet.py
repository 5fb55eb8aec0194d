"""Every view in one picture of each palette: `python -m tests.ui.sheet SHOTS_DIR OUT_DIR`.

Of the pictures that `tests.ui.shots` and `tests.ui.shots_text` made in SHOTS_DIR.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QGuiApplication, QImage, QImageWriter, QPainter

VIEWS: Final = (
    *("empty", "streaming", "chat", "error"),
    *("find", "search", "settings", "chat-options"),
    *("keys", "notices", "read-from", "editing"),
    *("models-available", "models-downloading", "models-failed", "models-picker"),
    *("meters-reading", "meters-drafting", "meters-not-measured", "meters-uneven"),
    *("meters-paused", "meters-busy", "meters-fallback", "meters-another-chat"),
    *("proving", "proved", "meters-difference", "replay"),
    *("why", "slow", "narrow", "narrow-chats"),
)
ACROSS: Final = 4
CELL: Final = QSize(640, 400)
QUALITY: Final = 78


def sheet(shots: Path, palette: str) -> QImage:
    """The views side by side, each as large as there is room for it."""
    files = [shots / f"{view}-{palette}.png" for view in VIEWS]
    for file in files:
        if not file.is_file():
            raise SystemExit(f"There is no {file}.")
    size = QSize(ACROSS * CELL.width(), -(-len(VIEWS) // ACROSS) * CELL.height())
    result = QImage(size, QImage.Format.Format_RGB32)
    painter = QPainter(result)
    for at, file in enumerate(files):
        shot = QImage(str(file))
        if not at:
            painter.fillRect(result.rect(), shot.pixelColor(shot.width() // 2, 80))
        shot.setDevicePixelRatio(1)
        shot = shot.scaled(
            CELL, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation
        )
        room = (CELL - shot.size()) / 2
        place = QPoint(at % ACROSS * CELL.width(), at // ACROSS * CELL.height())
        painter.drawImage(place + QPoint(room.width(), room.height()), shot)
    painter.end()
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shots", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    app = QGuiApplication(sys.argv[:1])  # noqa: F841 - a painter of images needs one
    for palette in ("light", "dark"):
        file = args.out / f"views-{palette}.webp"
        writer = QImageWriter(str(file), b"webp")
        writer.setQuality(QUALITY)
        if not writer.write(sheet(args.shots, palette)):
            raise SystemExit(f"{file}: {writer.errorString()}")
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
