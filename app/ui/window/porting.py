"""Chats out of the window and into it: a file is chosen, and the work is done elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, QObject, Signal
from PySide6.QtGui import QPageLayout, QPageSize, QPdfWriter, QTextDocument
from PySide6.QtWidgets import QFileDialog, QWidget

from app.conversation import Conversation
from app.history import Codec
from app.ui import task
from app.ui.window.book import Book

SUFFIXES: Final = {"markdown": ".md", "json": ".slipstream.json", "html": ".html", "pdf": ".pdf"}

_LONGEST: Final = 200
"""Bytes of a name; no system takes more than 255, with what stands around it."""

_DEVICES: Final = {
    "CON",
    "PRN",
    "AUX",
    "NUL",
    *(f"{d}{n}" for d in ("COM", "LPT") for n in range(10)),
}
"""What Windows takes for devices, whatever follows."""


class Porting(QObject):
    written = Signal(object)  # Path
    failed = Signal(object)  # SlipstreamError

    def __init__(self, book: Book, codec: Codec, window: QWidget) -> None:
        super().__init__(window)
        self._book, self._codec, self._window = book, codec, window

    def choose_export(self, chat: str, kind: str) -> None:
        """Ask where to, and write a chat there as one of `SUFFIXES`."""

        def chosen(found: Conversation) -> None:
            name = file_name(found.title) + SUFFIXES[kind]
            what = f"{kind} (*{SUFFIXES[kind]})"
            path, _ = QFileDialog.getSaveFileName(self._window, "Export the chat", name, what)
            if path:
                self.export(found, kind, Path(path))

        self._book.with_chat(chat, chosen)

    def export(self, chat: Conversation, kind: str, path: Path) -> None:
        from app.history import exchange  # here: no start needs it

        text = {
            "markdown": lambda: exchange.as_markdown(chat),
            "html": lambda: exchange.as_html(chat),
            "pdf": lambda: exchange.as_html(chat),
            "json": lambda: exchange.as_json(chat, self._codec),
        }[kind]()
        task.run(
            self,
            lambda progress, cancel: exchange.write(path, as_pdf(text) if kind == "pdf" else text),
            lambda _: self.written.emit(path),
            self.failed.emit,
        )

    def choose_import(self) -> None:
        what = "Chats (*.json);;All files (*)"
        paths, _ = QFileDialog.getOpenFileNames(self._window, "Import chats", "", what)
        for path in paths:
            self.take_in(Path(path))

    def take_in(self, path: Path) -> None:
        from app.history import exchange

        task.run(
            self,
            lambda progress, cancel: exchange.read(path, self._codec),
            self._book.add,
            self.failed.emit,
        )


def file_name(title: str) -> str:
    """A title as every system takes it for a file, with any of `SUFFIXES`."""
    plain = re.sub(r'[\x00-\x1f<>:"/\\|?*.\ud800-\udfff]', " ", title)
    name = " ".join(plain.split())[:80]
    while len(name.encode()) > _LONGEST:
        name = name[:-1]
    return f"Chat {name}".strip() if name.upper() in _DEVICES else name.rstrip() or "Chat"


_ALIGNED: Final = re.compile(r'<(t[dh]) style="text-align: ?(\w+);?"')
"""A cell of a table as Markdown writes it. A style of its own would be Qt's only one of that cell,
which loses its border."""


def as_pdf(page: str) -> bytes:
    """A page of HTML, on A4. In memory: of a disk that is full Qt would only warn."""
    made = QBuffer()
    made.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(made)
    writer.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
    writer.setPageMargins(QMarginsF(20, 20, 20, 20), QPageLayout.Unit.Millimeter)
    document = QTextDocument()
    document.setDefaultStyleSheet("a { color: #1d4f91; }")  # the theme's may be near white
    document.setHtml(_ALIGNED.sub(r'<\1 align="\2"', page))
    document.print_(writer)
    del writer  # which ends the file
    return bytes(made.data().data())
