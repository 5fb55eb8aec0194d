"""What a desktop wants to know of an app, below a folder `share`."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

TEMPLATES = Path(__file__).parents[1] / "linux"
SIZES = (16, 22, 24, 32, 48, 64, 128, 256, 512)  # px, of hicolor

PLACES = {
    "ID.desktop": "applications/@ID@.desktop",
    "ID.metainfo.xml": "metainfo/@ID@.metainfo.xml",
    "ID.mime.xml": "mime/packages/@ID@.xml",
}


def lay(share: Path, identity: str, home: str, version: str, epoch: int) -> None:
    """Entry, metadata, type of exported chats, icons, and the manual page.

    `home` is the page of the project, below which its pictures lie.
    """
    date = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d")
    known = {"ID": identity, "HOME": home, "VERSION": version, "DATE": date}
    known["DEVELOPER"] = identity.rpartition(".")[0]
    for name, place in PLACES.items():
        write(share / filled(place, known), filled(_template(name), known).encode())
    manual = filled(_template("slipstream.1"), known).encode()
    write(share / "man/man1/slipstream.1.gz", packed(manual))
    icons = share / "icons/hicolor"
    write(icons / f"scalable/apps/{identity}.svg", _template("icon.svg").encode())
    for size in SIZES:
        picture = icons / f"{size}x{size}/apps/{identity}.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        draw(TEMPLATES / "icon.svg", size, picture)


def filled(text: str, known: dict[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(f"@{name}@", value)
    return text


def draw(drawing: Path, size: int, picture: Path) -> None:
    """An SVG as a picture of `size` px, in the format that the picture's name says."""
    from PySide6.QtCore import QRectF, Qt
    from PySide6.QtGui import QImage, QPainter
    from PySide6.QtSvg import QSvgRenderer

    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(str(drawing)).render(painter, QRectF(0, 0, size, size))
    painter.end()
    if not image.save(str(picture)):
        raise OSError(f"{picture} cannot be written")


def packed(text: bytes) -> bytes:
    return gzip.compress(text, 9, mtime=0)


def write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
