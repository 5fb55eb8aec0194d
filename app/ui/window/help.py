"""Help: which keys there are, what runs here, where the log is, whose work this stands on."""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QAction, QDesktopServices, QFont, QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app import paths
from app.engine import DeviceInfo
from app.ui.look import theme, words
from app.ui.look.flow import Flow
from app.ui.look.labels import breakable, note, section
from app.ui.look.language import tr
from app.ui.look.sheet import Sheet
from app.ui.look.theme import MONO, Size, Space
from app.ui.window.actions import Topic

_LOG_TAIL: Final = 8_000
"""Bytes of the log's end that are shown."""

_STANDS_ON: Final = (
    ("llama.cpp and llama-cpp-python", "the engine's ground", "MIT"),
    ("Qt and PySide6", "the window", "LGPL 3"),
    ("Jinja2", "chat templates", "BSD"),
    ("markdown-it-py and Pygments", "the text of answers", "MIT, BSD"),
    ("NumPy, gguf, huggingface-hub", "model files", "BSD, MIT, Apache 2.0"),
    ("pypdf", "text of PDF files", "BSD"),
    ("ziamath and STIX Two", "formulas", "MIT, SIL Open Font License 1.1"),
    ("Inter, JetBrains Mono", "typefaces", "SIL Open Font License 1.1"),
)
_TEXT_HEIGHT: Final = 320  # px, of a licence that is read
_FIELD_KEYS: Final = (
    ("New line", "Shift+Enter"),
    ("Send, whatever is set", "Ctrl+Enter"),
    ("Scroll the chat", "Page Up, Page Down"),
    ("Next control", "Tab"),
    ("Press what has the focus", "Enter, Space"),
)


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    """Somebody's work that the installed app contains."""

    name: str
    version: str
    licence: str
    text: str


def parts() -> list[Part]:
    """All of them, as they were collected when the app was made; empty in a checkout, which
    contains none."""
    file = paths.assets() / "licences.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return [Part(p["name"], p["version"], p["licence"], p["text"]) for p in found]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, LookupError, TypeError) as error:
        _log.warning("`%s` cannot be read: %s", file, error)
        return []


class HelpSheet(Sheet):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Help", parent)
        self._content = QWidget()
        self.form.addWidget(self._content)
        self.form.addStretch(1)
        self.devices: Sequence[DeviceInfo] = ()
        self.actions_: Sequence[QAction] = ()

    def show_topic(self, topic: Topic) -> None:
        self.set_title(topic.value)
        fill = {
            Topic.KEYS: self._keys,
            Topic.DEVICES: self._devices,
            Topic.LOG: self._log,
            Topic.LICENCES: self._licences,
            Topic.ABOUT: self._about,
        }
        old, self._content = self._content, QWidget()
        column = QVBoxLayout(self._content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(Space.S)
        fill[topic](column)
        self.form.replaceWidget(old, self._content)
        old.deleteLater()
        self.area.verticalScrollBar().setValue(0)

    def _keys(self, column: QVBoxLayout) -> None:
        rows = [(a.text(), _keys_of(a)) for a in self.actions_ if a.shortcuts()]
        for what, keys in (*rows, *_FIELD_KEYS):
            label = QLabel(keys)
            label.setFont(theme.font(Size.SMALL, family=MONO))
            label.setProperty("kind", "muted")
            row = QHBoxLayout()
            row.addWidget(_text(what), 1)
            row.addWidget(label)
            column.addLayout(row)

    def _devices(self, column: QVBoxLayout) -> None:
        if not self.devices:
            column.addWidget(note("The engine has not told what it can compute on."))
        for device in self.devices:
            title = device.description or device.name
            column.addWidget(section(title))
            known = dict.fromkeys((device.name, device.kind.upper()))  # often the same
            about = [part for part in known if part != title]
            if device.memory_total:
                free = words.size(device.memory_free)
                about.append(f"{free} of {words.size(device.memory_total)} free")
            column.addWidget(_text(" · ".join(about)))
            if not device.usable:
                column.addWidget(note(device.reason or "It cannot be used."))

    def _log(self, column: QVBoxLayout) -> None:
        file = paths.log_file()
        where = breakable(str(file))
        column.addWidget(note(f"What went wrong is written to `{where}`. It holds no chats."))
        tail = _tail(file)
        column.addLayout(
            _buttons(
                ("Open the folder", lambda: _open(file.parent)),
                ("Copy the end", lambda: QGuiApplication.clipboard().setText(tail)),
            )
        )
        text = _text(breakable(tail) or "Nothing has been logged.")
        text.setFont(theme.font(Size.SMALL, family=MONO))
        column.addWidget(text)

    def _licences(self, column: QVBoxLayout) -> None:
        if inside := parts():
            column.addWidget(note("Slipstream is under the MIT licence. It contains:"))
            for part in inside:
                column.addLayout(_part_row(part))
            return
        column.addWidget(note("Slipstream is under the MIT licence. It stands on:"))
        for name, what, licence in _STANDS_ON:
            label = _text(name)
            label.setFont(theme.font(Size.CONTROL, QFont.Weight.Medium))
            both = QVBoxLayout()
            both.setSpacing(2)
            both.addWidget(label)
            both.addWidget(note(f"{what} · {licence}"))
            column.addLayout(both)

    def _about(self, column: QVBoxLayout) -> None:
        facts = about()
        column.addWidget(
            note(
                "Slipstream answers with Qwen3.5 models on this machine and drafts with DFlash. "
                "Nothing that is written here leaves it."
            )
        )
        column.addWidget(_text(facts))
        column.addLayout(_buttons(("Copy", lambda: QGuiApplication.clipboard().setText(facts))))


def _part_row(part: Part) -> QVBoxLayout:
    """A part, with its licence behind a button: all of them at once are a book."""
    row = QVBoxLayout()
    row.setSpacing(2)
    name = _text(f"{part.name} {part.version}".strip())
    name.setFont(theme.font(Size.CONTROL, QFont.Weight.Medium))
    row.addWidget(name)
    row.addWidget(note(breakable(part.licence)))
    if not part.text:
        return row

    def toggle() -> None:
        """The field is there while it is read."""
        if row.count() > known:
            if (item := row.takeAt(known)) is not None and (field := item.widget()) is not None:
                field.deleteLater()
            button.setText(tr("Read"))
            return
        text = QPlainTextEdit(part.text)
        text.setReadOnly(True)
        text.setTabChangesFocus(True)
        text.setAccessibleName(tr("Licence of {name}").format(name=part.name))
        text.setFont(theme.font(Size.SMALL, family=MONO))
        text.setFixedHeight(_TEXT_HEIGHT)
        row.addWidget(text)
        button.setText(tr("Close"))

    button = QPushButton(tr("Read"))
    button.setProperty("kind", "outline")
    button.setAccessibleName(tr("Licence of {name}").format(name=part.name))
    button.clicked.connect(toggle)
    buttons = Flow(spacing=Space.S)
    buttons.addWidget(button)
    row.addLayout(buttons)
    known = row.count()
    return row


def about() -> str:
    """What a report of a fault should begin with."""
    from importlib.metadata import version  # seldom asked, and each start would pay for it

    return "\n".join(
        (
            f"Slipstream {version('slipstream')}",
            f"Engine {version('llama-cpp-python')}",
            f"Python {platform.python_version()}, Qt {version('PySide6-Essentials')}",
            f"{platform.system()} {platform.release()}, {platform.machine()}",
            f"Settings: {paths.settings_file()}",
            f"Data: {paths.data()}",
        )
    )


def _keys_of(action: QAction) -> str:
    form = QKeySequence.SequenceFormat.NativeText
    return ", ".join(keys.toString(form) for keys in action.shortcuts())


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as log:
            log.seek(max(0, file.stat().st_size - _LOG_TAIL))
            lines = log.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[1:] if len(lines) > 1 else lines)


def _open(folder: Path) -> None:
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))


def _text(text: str) -> QLabel:
    result = QLabel(tr(text))
    result.setTextFormat(Qt.TextFormat.PlainText)
    result.setWordWrap(True)
    result.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return result


def _buttons(*buttons: tuple[str, object]) -> Flow:
    row = Flow(spacing=Space.S)
    for text, operation in buttons:
        button = QPushButton(tr(text))
        button.setProperty("kind", "outline")
        button.clicked.connect(operation)
        row.addWidget(button)
    return row
