"""What goes with a message: a chip for each file.

Of one that is written they tell the tokens, and take the file away; of one that was asked they tell
the lines, and show the file.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.drafting import Attachment
from app.ui.look import words
from app.ui.look.icons import IconButton
from app.ui.look.theme import Space

_SEEN: Final = 4
"""Chips that are shown; of more, the last one tells how many there are."""
_NAME: Final = 48
_LINE: Final = "\n"


class Chips(QWidget):
    removed = Signal(int)  # its place

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(Space.XS)
        self.buttons: list[IconButton] = []
        self.hide()

    def show_attachments(
        self, attachments: tuple[Attachment, ...], tokens: dict[Attachment, int]
    ) -> None:
        for button in self.buttons:
            button.hide()
            button.deleteLater()
        self.buttons = []
        shown = _seen(attachments)
        for place, attachment in enumerate(shown):
            text = f"{_short(attachment.name)} · {_size(attachment, tokens.get(attachment))}"
            self._add(text, f"Take away {attachment.name}", place)
        if len(attachments) > len(shown):
            more = attachments[len(shown) :]
            counts = [tokens.get(a) for a in more]
            known = sum(count for count in counts if count)
            text = f"{len(more)} more · {words.count(known)} tokens"
            self._add(text, "Take away the last one", len(attachments) - 1)
        self.setVisible(bool(attachments))

    def _add(self, text: str, label: str, place: int) -> None:
        button = _chip("close", label, text)
        button.clicked.connect(lambda: self.removed.emit(place))
        self._column.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        self.buttons.append(button)


def file_chips(files: tuple[Attachment, ...]) -> list[IconButton]:
    """Of the files in a question that was asked: pressed, they are to be shown."""
    seen = _seen(files)
    told = [
        (f"{_short(file.name)} · {words.number(file.text.count(_LINE), 'line')}", file.name)
        for file in seen
    ]
    if more := len(files) - len(seen):
        told.append((words.number(more, "more file"), "all files"))
    return [_chip("attach", f"Show {what}", text) for text, what in told]


def _seen(files: tuple[Attachment, ...]) -> tuple[Attachment, ...]:
    return files if len(files) <= _SEEN else files[: _SEEN - 1]


def _chip(icon: str, label: str, text: str) -> IconButton:
    result = IconButton(icon, label, kind="outline", text=text, size=14)
    result.setMinimumWidth(1)  # Qt leaves out the middle of what is too long
    return result


def _short(name: str) -> str:
    """Its end tells what kind of file it is."""
    return name if len(name) <= _NAME else f"{name[: _NAME - 11]}…{name[-10:]}"


def _size(attachment: Attachment, tokens: int | None) -> str:
    if tokens is None:
        return f"{words.count(len(attachment.text))} characters"
    return f"{words.count(tokens)} tokens"
