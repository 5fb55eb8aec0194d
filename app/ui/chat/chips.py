"""What goes with a message: a chip for each file, which shows what is in it.

Of one that is written they tell the tokens, and can take the file away; of one that was asked they
tell the lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.drafting import Attachment
from app.ui.look import theme, words
from app.ui.look.controls import claim_escape
from app.ui.look.icons import IconButton
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space

_SEEN: Final = 4
"""Chips that are shown; of more, the last one tells how many there are."""
_NAME: Final = 48
_LINE: Final = "\n"
_LINES_READ: Final = 8
"""Height of what shows a file, which scrolls..."""
_BESIDES: Final = 240
"""... and px that a low window needs for all else; of what is left, it takes half."""
_MOST_READ: Final = 100_000
"""Characters of a file that are shown: more of them would hold the window."""


class Chip(QFrame):
    """Its name shows what is in it, and a button of its own takes it away."""

    def __init__(self, files: tuple[Attachment, ...], label: str, away: str) -> None:
        super().__init__()
        self.files = files
        self.setProperty("kind", "chip")
        self.name = IconButton("attach", label, kind="chip", text=" ", size=14)
        self.name.setCheckable(True)
        self.name.setMinimumWidth(1)  # Qt leaves out the middle of what is too long
        self.away = IconButton("close", away, kind="chip", size=14)
        row = QHBoxLayout(self)
        row.setContentsMargins(1, 1, 1, 1)  # the frame's own line
        row.setSpacing(0)
        row.addWidget(self.name)
        row.addWidget(self.away)


class Chips(QWidget):
    """Of a message that is written; below them what is in the one that was pressed."""

    removed = Signal(int)  # its place
    unwanted = Signal()  # what is still being read

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.chips: list[Chip] = []
        self._attachments: tuple[Attachment, ...] = ()
        self._read: tuple[Attachment, ...] = ()  # those that are shown
        self.page = QPlainTextEdit()
        self.page.setReadOnly(True)
        self.page.setAccessibleName(tr("What is attached"))
        self.page.setProperty("kind", "field")
        self.page.setFont(theme.font(Size.CONTROL))
        self.page.setTabChangesFocus(True)
        self.page.installEventFilter(self)
        self.page.hide()
        self.reading = Chip((), "Being read", "Do not attach it")
        self.reading.name.setEnabled(False)  # there is nothing to be shown yet
        self.reading.away.clicked.connect(self.unwanted)
        self.reading.hide()
        self._row = QVBoxLayout()
        self._row.setSpacing(Space.XS)
        self._row.addWidget(self.reading, 0, Qt.AlignmentFlag.AlignLeft)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(Space.S)
        column.addLayout(self._row)
        column.addWidget(self.page)
        self.hide()

    def show_attachments(
        self, attachments: tuple[Attachment, ...], tokens: dict[Attachment, int]
    ) -> None:
        if attachments != self._attachments:
            self._attachments = attachments
            self._make()
        for chip in self.chips:
            chip.name.setText(_told(chip.files, tokens))
        self._show_any()

    def show_reading(self, names: Sequence[str]) -> None:
        """Files that are still being read."""
        if names:
            what = _short(names[0]) if len(names) == 1 else words.number(len(names), "file")
            self.reading.name.setText(tr("Reading {what} …").format(what=what))
            self.reading.name.set_label(tr("Reading {what} …").format(what=", ".join(names)))
            self.reading.away.set_label(tr("Do not attach {what}").format(what=what))
        self.reading.setVisible(bool(names))
        self._show_any()

    # --- Qt -----------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Escape in what is read closes it."""
        if claim_escape(event):
            return True
        pressed = event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent)
        if pressed and event.key() == Qt.Key.Key_Escape:  # type: ignore[attr-defined]
            read = next(chip for chip in self.chips if chip.name.isChecked())
            read.name.setFocus(Qt.FocusReason.OtherFocusReason)
            self._show(())
            return True
        return super().eventFilter(watched, event)

    # --- own ----------------------------------------------------------------------------

    def _show_any(self) -> None:
        self.setVisible(bool(self._attachments) or not self.reading.isHidden())

    def _make(self) -> None:
        for chip in self.chips:
            chip.hide()
            chip.deleteLater()
        self.chips = []
        files = self._attachments
        seen = _seen(files)
        for place, one in enumerate(seen):
            self._add(Chip((one,), f"Show {one.name}", f"Take away {one.name}"), place)
        if more := files[len(seen) :]:
            self._add(Chip(more, "Show the others", "Take away the last one"), len(files) - 1)
        known = [chip.files for chip in self.chips]
        self._show(self._read if self._read in known else ())

    def _add(self, chip: Chip, place: int) -> None:
        chip.away.clicked.connect(lambda: self.removed.emit(place))
        chip.name.clicked.connect(lambda on: self._show(chip.files if on else ()))
        last = self._row.count() - 1  # that of what is being read stands below them
        self._row.insertWidget(last, chip, 0, Qt.AlignmentFlag.AlignLeft)
        self.chips.append(chip)

    def _show(self, files: tuple[Attachment, ...]) -> None:
        """What is in them; nothing where there are none."""
        for chip in self.chips:
            chip.name.setChecked(chip.files == files)
        if files and files != self._read:
            line, left = self.page.fontMetrics().lineSpacing(), self.window().height() - _BESIDES
            height = max(line, min(_LINES_READ * line, left // 2 - 2 * Space.S))
            self.page.setFixedHeight(height + 2 * Space.S)
            self.page.setPlainText(_text(files))
            self.page.setAccessibleName(tr("What is in {name}").format(name=files[0].name))
        self._read = files
        self.page.setVisible(bool(files))


def file_chips(files: tuple[Attachment, ...]) -> list[IconButton]:
    """Of the files in a question that was asked: pressed, they are to be shown."""
    seen = _seen(files)
    told = [
        (f"{_short(file.name)} · {words.number(file.text.count(_LINE), 'line')}", file.name)
        for file in seen
    ]
    if more := len(files) - len(seen):
        told.append((words.number(more, "more file"), "all files"))
    chips = [IconButton("attach", f"Show {w}", kind="outline", text=t, size=14) for t, w in told]
    for chip in chips:
        chip.setMinimumWidth(1)  # Qt leaves out the middle of what is too long
    return chips


def _seen(files: tuple[Attachment, ...]) -> tuple[Attachment, ...]:
    return files if len(files) <= _SEEN else files[: _SEEN - 1]


def _short(name: str) -> str:
    """Its end tells what kind of file it is."""
    return name if len(name) <= _NAME else f"{name[: _NAME - 11]}…{name[-10:]}"


def _told(files: tuple[Attachment, ...], tokens: dict[Attachment, int]) -> str:
    counts = [tokens.get(file) for file in files]
    if len(files) > 1:
        known = sum(count for count in counts if count)
        return f"{len(files)} more · {words.count(known)} tokens"
    if counts[0] is None:
        return f"{_short(files[0].name)} · {words.count(len(files[0].text))} characters"
    return f"{_short(files[0].name)} · {words.count(counts[0])} tokens"


def _text(files: tuple[Attachment, ...]) -> str:
    text = files[0].text if len(files) == 1 else "\n\n".join(file.message() for file in files)
    if (more := len(text) - _MOST_READ) <= 0:
        return text
    return f"{text[:_MOST_READ]}\n\n… and {words.count(more)} characters more"
