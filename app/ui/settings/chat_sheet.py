"""This chat: its system prompt, what of the settings is its own, and presets of all that."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.presets import ChatOptions
from app.ui.look import theme
from app.ui.look.controls import Segments, order_tabs
from app.ui.look.icons import IconButton, icon
from app.ui.look.labels import note, section
from app.ui.look.language import tr
from app.ui.look.sheet import Sheet
from app.ui.look.theme import Space
from app.ui.settings.rows import PENALTY_ROWS, Group, NumberRow, choice

_PAUSE_MS: Final = 400
"""Pause in writing after which a system prompt holds."""
_SAME: Final = "as set"
_THINK: Final = {"": "As set", "off": "Off", "on": "On"}
_VERIFY: Final = {"": "As set", "greedy": "Greedy", "gpu-sample": "Sampled"}
_NUMBERS: Final = (
    ("think_budget", "Thinking limit", "Tokens of thinking, after which it answers.", int),
    ("temperature", "Temperature", "0 is greedy; higher is more varied.", float),
    ("top_k", "Top-k", "Keep the k likeliest tokens; 0 keeps all.", int),
    ("top_p", "Top-p", "Keep the likeliest tokens up to this share.", float),
    ("min_p", "Min-p", "Drop tokens below this share of the best.", float),
    *(row[:4] for row in PENALTY_ROWS),
    ("max_tokens", "Answer limit", "Tokens of one answer, its thinking included.", int),
)


class ChatSheet(Sheet):
    changed = Signal(object)  # ChatOptions
    preset_saved = Signal(str)  # under this name, what is shown
    preset_removed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("This chat", parent)
        self.options = ChatOptions()
        self._presets: dict[str, ChatOptions] = {}
        self._uses: dict[str, QPushButton] = {}
        self.system = QPlainTextEdit()
        self.system.setAccessibleName(tr("System prompt"))
        self.system.setPlaceholderText(tr("What the model is told before the chat begins …"))
        self.system.setTabChangesFocus(True)
        self.system.setFixedHeight(120)
        self.system.setProperty("kind", "field")
        self._pause = QTimer(self, interval=_PAUSE_MS, singleShot=True)
        self._pause.timeout.connect(self._take_system)
        self.think = Segments("Thinking", _THINK)
        self.verify = Segments("Verify", _VERIFY)
        self.numbers = {
            key: NumberRow(
                key, label, hint, kind, _SAME, partial(self._check, key), partial(self._take, key)
            )
            for key, label, hint, kind in _NUMBERS
        }
        self.name = QLineEdit()
        self.name.setPlaceholderText(tr("Name of a preset"))
        self.name.setAccessibleName(tr("Name of a preset"))
        self.name.setMaxLength(60)
        self.save = QPushButton(tr("Save as preset"))
        self.save.setProperty("kind", "outline")
        self.save.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._list = QVBoxLayout()
        self._list.setSpacing(Space.S)
        self.own = Group("System prompt", "Back to the settings, and no system prompt")
        self._lay_out()
        self.system.textChanged.connect(self._pause.start)
        self.think.chosen.connect(lambda key: self._take("think", key == "on" if key else None))
        self.verify.chosen.connect(lambda key: self._take("verify", key or None))
        self.name.returnPressed.connect(self._save)
        self.save.clicked.connect(self._save)
        self.save.setEnabled(False)  # without a name there is nothing to save it as
        self.name.textChanged.connect(lambda text: self.save.setEnabled(bool(text.strip())))
        self.own.reset_wanted.connect(lambda: self._put(ChatOptions()))
        self.show_options(ChatOptions())

    def _lay_out(self) -> None:
        form = self.form
        self._chosen = Group("Presets")
        self._chosen.reset.hide()
        form.addWidget(self._chosen)
        form.addLayout(self._list)
        form.addWidget(self.own)
        form.addWidget(self.system)
        form.addWidget(choice("Think first", self.think))
        form.addWidget(choice("Verify", self.verify))
        for row in self.numbers.values():
            form.addWidget(row)
        form.addWidget(note("What is left empty is as in the settings."))
        form.addWidget(section("Keep this for other chats"))
        line = QHBoxLayout()
        line.addWidget(self.name, 1)
        line.addWidget(self.save)
        form.addLayout(line)
        form.addStretch(1)

    def show_chat(self, options: ChatOptions) -> None:
        """Of another chat: nothing that was typed for the one before stands."""
        self.show_options(options)
        for row in self.numbers.values():
            row.reset()

    def show_options(self, options: ChatOptions) -> None:
        """Of the chat on view; a number that is being typed stays."""
        self.options = options
        if self.system.toPlainText() != options.system:
            self.system.setPlainText(options.system)
        self._pause.stop()
        think = options.get("think")
        self.think.choose("" if think is None else "on" if think else "off")
        self.verify.choose(options.get("verify") or "")
        for key, row in self.numbers.items():
            row.show_value(options.get(key))
        self._show_chosen()

    def show_presets(self, presets: dict[str, ChatOptions]) -> None:
        self._presets = presets
        self._chosen.setVisible(bool(presets))
        self._uses.clear()
        while item := self._list.takeAt(0):
            if old := item.widget():
                old.hide()
                old.deleteLater()
        for name in sorted(presets, key=str.casefold):
            self._list.addWidget(self._row(name))
        order_tabs(self.form)
        self._show_chosen()

    def keep(self) -> None:
        """What is being written holds now."""
        if self._pause.isActive():
            self._take_system()
        for row in self.numbers.values():
            row.keep()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._show_chosen()  # its tick has the palette's colour

    def _row(self, name: str) -> QWidget:
        use = QPushButton(name)
        use.setProperty("kind", "outline")
        use.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        use.setAccessibleName(f"Use the preset {name}")
        use.setCheckable(True)
        use.clicked.connect(lambda: self._use(name))
        remove = IconButton("close", f"Remove the preset {name}", size=14)
        remove.clicked.connect(lambda: self.preset_removed.emit(name))
        self._uses[name] = use
        result = QWidget()
        row = QHBoxLayout(result)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(use, 1)
        row.addWidget(remove)
        return result

    def _check(self, key: str, value: Any) -> None:
        self.options.choose(key, value)

    def _take(self, key: str, value: Any) -> None:
        written = replace(self.options, system=self.system.toPlainText())
        self._change(written.choose(key, value))

    def _take_system(self) -> None:
        self._pause.stop()
        self._change(replace(self.options, system=self.system.toPlainText()))

    def _use(self, name: str) -> None:
        self._put(self._presets[name])
        self._show_chosen()  # the button has ticked itself

    def _show_chosen(self) -> None:
        tick = icon("check", theme.current().text, 14)
        for name, button in self._uses.items():
            chosen = name == self.options.preset
            button.setChecked(chosen)
            button.setIcon(tick if chosen else QIcon())

    def _put(self, options: ChatOptions) -> None:
        """All of them, also in place of what is being typed."""
        self._change(options)
        self.show_chat(options)

    def _change(self, options: ChatOptions) -> None:
        if options != self.options:
            self.show_options(options)
            self.changed.emit(options)

    def _save(self) -> None:
        self.keep()
        if name := " ".join(self.name.text().split()):
            self.name.clear()
            self.preset_saved.emit(name)
