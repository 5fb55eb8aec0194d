"""The settings: a sheet over the right side of the window.

A value is taken over as soon as it is one that can be used; otherwise its field says
what is wrong and the old value stays in force.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from app.errors import OptionError
from app.settings import RANGES
from app.ui.look import theme
from app.ui.look.controls import Segments
from app.ui.look.sheet import Sheet, note, section
from app.ui.look.theme import Size
from app.ui.settings.flow import SettingsFlow

_VERIFY: Final = {
    "greedy": "Greedy",
    "gpu-sample": "GPU sampling",
    "host-sample": "Host sampling",
}
_ABOUT_VERIFY: Final = {
    "greedy": "Takes the likeliest token at each place; what follows plays no part.",
    "gpu-sample": "Draws from the model's distribution on the device where it runs.",
    "host-sample": "Draws from the model's distribution on the CPU.",
}


_DRAFTER: Final = {"same": "With the model", "auto": "Auto", "cpu": "CPU", "gpu": "GPU"}


class NumberRow(QWidget):
    """A label, a field and, below it, a hint or what is wrong."""

    def __init__(
        self,
        flow: SettingsFlow,
        key: str,
        label: str,
        hint: str,
        kind: Callable[[str], float],
        empty: str = "",
    ) -> None:
        super().__init__()
        self._flow = flow
        self._key, self._kind, self._hint, self._empty = key, kind, hint, empty
        name = QLabel(label)
        self.field = QLineEdit()
        self.field.setFixedWidth(112)
        self.field.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.field.setPlaceholderText(empty)
        self.field.setAccessibleName(label)
        self.field.setAccessibleDescription(hint)
        self.note = QLabel(hint)
        self.note.setFont(theme.font(Size.SMALL))
        self.note.setProperty("kind", "caption")
        self.note.setWordWrap(True)
        name.setBuddy(self.field)
        row = QHBoxLayout()
        row.addWidget(name)
        row.addStretch(1)
        row.addWidget(self.field)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(row)
        column.addWidget(self.note)
        self.field.textEdited.connect(lambda _: self._check())
        self.field.editingFinished.connect(self._finish)
        flow.follow(key, self.show_value)

    def show_value(self, value: float | None) -> None:
        if not self.field.hasFocus():
            self.field.setText(
                "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
            )
            self._complain("")

    def _check(self) -> Any:
        """The value, if it can be used; else a complaint, and `...` for none."""
        text = self.field.text().strip()
        try:
            unset = not text and bool(self._empty)
            value: Any = None if unset else self._kind(text.replace(",", "."))
            replace(self._flow.current, **{self._key: value})
        except (ValueError, OptionError):
            none = f", or nothing for “{self._empty}”" if self._empty else ""
            self._complain(f"Use {RANGES[self._key]}{none}.")
            return ...
        self._complain("")
        return value

    def _finish(self) -> None:
        if (value := self._check()) is not ...:
            self._flow.change(**{self._key: value})

    def _complain(self, text: str) -> None:
        self.note.setText(text or self._hint)
        self.note.setProperty("kind", "error" if text else "caption")
        self.field.setProperty("invalid", bool(text))
        self.field.setAccessibleDescription(text or self._hint)
        for widget in (self.note, self.field):
            widget.style().unpolish(widget)
            widget.style().polish(widget)


class SettingsSheet(Sheet):
    def __init__(self, flow: SettingsFlow, parent: QWidget | None = None) -> None:
        super().__init__("Settings", parent)

        self.verify = Segments("Verify", _VERIFY)
        self._about_verify = note("")
        self.drafter = Segments("Drafter runs on", _DRAFTER)
        self.theme = Segments("Theme", {"system": "System", "light": "Light", "dark": "Dark"})
        self.send = Segments("Send with", {"enter": "Enter", "ctrl-enter": "Ctrl+Enter"})
        self.think = Segments("Thinking", {"off": "Off", "on": "On"})
        self.numbers = {
            key: NumberRow(flow, key, label, hint, kind, empty)
            for key, label, hint, kind, empty in (
                ("temperature", "Temperature", "0 is greedy; higher is more varied.", float, ""),
                ("top_k", "Top-k", "Keep the k likeliest tokens; 0 keeps all.", int, ""),
                ("top_p", "Top-p", "Keep the likeliest tokens up to this share.", float, ""),
                ("min_p", "Min-p", "Drop tokens below this share of the best.", float, ""),
                ("seed", "Seed", "The same seed gives the same answer.", int, "random"),
                ("block", "Block length", "Tokens verified in one round.", int, "auto"),
                ("max_tokens", "Answer limit", "Tokens of one answer, at most.", int, ""),
                ("n_ctx", "Context", "Tokens of a conversation; reloads the model.", int, ""),
            )
        }
        form = self.form
        form.addWidget(section("Answers"))
        form.addWidget(QLabel("Verify"))
        form.addWidget(self.verify, 0, Qt.AlignmentFlag.AlignLeft)
        form.addWidget(self._about_verify)
        for key in ("temperature", "top_k", "top_p", "min_p", "seed"):
            form.addWidget(self.numbers[key])
        form.addWidget(_choice("Think first", self.think))
        form.addWidget(section("Engine"))
        form.addWidget(QLabel("Drafter runs on"))
        form.addWidget(self.drafter, 0, Qt.AlignmentFlag.AlignLeft)
        for key in ("block", "max_tokens", "n_ctx"):
            form.addWidget(self.numbers[key])
        form.addWidget(section("Window"))
        form.addWidget(_choice("Theme", self.theme))
        form.addWidget(_choice("Send with", self.send))
        form.addWidget(section("About"))
        form.addWidget(
            note(
                "Slipstream answers with Qwen3.5 models on this machine and drafts with DFlash. "
                "Nothing leaves it. Typefaces: Inter and JetBrains Mono, SIL Open Font License."
            )
        )
        form.addStretch(1)
        self.verify.chosen.connect(lambda key: flow.change(verify=key))
        self.drafter.chosen.connect(lambda key: flow.change(draft_backend=key))
        self.theme.chosen.connect(lambda key: flow.change(theme=key))
        self.send.chosen.connect(lambda key: flow.change(send_with=key))
        self.think.chosen.connect(lambda key: flow.change(think=key == "on"))
        flow.follow("verify", self._show_verify)
        flow.follow("draft_backend", self.drafter.choose)
        flow.follow("theme", self.theme.choose)
        flow.follow("send_with", self.send.choose)
        flow.follow("think", lambda think: self.think.choose("on" if think else "off"))

    def _show_verify(self, way: str) -> None:
        self.verify.choose(way)
        self._about_verify.setText(_ABOUT_VERIFY[way])


def _choice(label: str, control: Segments) -> QWidget:
    result = QWidget()
    row = QHBoxLayout(result)
    row.setContentsMargins(0, 0, 0, 0)
    row.addWidget(QLabel(label))
    row.addStretch(1)
    row.addWidget(control)
    return result
