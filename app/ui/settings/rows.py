"""Rows of a settings form: a label, what is chosen, and below it a hint or what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.errors import OptionError
from app.settings import RANGES
from app.ui.look.controls import Segments, repolish
from app.ui.look.labels import note, section
from app.ui.look.language import tr
from app.ui.look.theme import Space

PENALTY_ROWS: Final = (
    ("presence_penalty", "Presence penalty", "Taken off each token that came before.", float, ""),
    ("frequency_penalty", "Frequency penalty", "The same, for each time it came.", float, ""),
    ("repeat_penalty", "Repetition penalty", "Above 1 makes what came before rarer.", float, ""),
    ("penalty_last_n", "Penalty window", "Tokens looked back on; -1 is all.", int, ""),
)
"""Key, label, hint, kind, and what an empty field means."""


class NumberRow(QWidget):
    """`check` takes a value over, or raises `OptionError`; empty text is None where it may be."""

    def __init__(
        self,
        key: str,
        label: str,
        hint: str,
        kind: Callable[[str], float],
        empty: str,
        check: Callable[[Any], None],
        take: Callable[[Any], None],
    ) -> None:
        super().__init__()
        self._key, self._kind = key, kind
        label, self._hint, self._empty = tr(label), tr(hint), tr(empty)
        self._check_value, self._take = check, take
        self._value: float | None = None
        self._told = ""  # what is to be known about the value in force
        name = QLabel(label)
        self.field = QLineEdit()
        self.field.setFixedWidth(112)
        self.field.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.field.setPlaceholderText(self._empty)
        self.field.setAccessibleName(label)
        self.note = note(self._hint)
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
        self._complain("")

    def show_value(self, value: float | None) -> None:
        """The value in force; what is being typed stays."""
        self._value = value
        if not self.field.hasFocus():
            self.reset()

    def keep(self) -> None:
        """What is being typed holds now, if it can be used."""
        if self.field.isModified() and (value := self._check()) is not ...:
            self._value = value
            self._take(value)

    def reset(self) -> None:
        """Show the value in force, whatever was typed."""
        value = self._value
        self.field.setText(
            "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        )
        self._complain("")

    def set_empty(self, empty: str) -> None:
        """What is meant where nothing is typed."""
        self._empty = tr(empty)
        self.field.setPlaceholderText(self._empty)

    def tell(self, text: str, plays_a_part: bool = True) -> None:
        """What is to be known of the value in force, or why it plays no part now."""
        self._told = tr(text)
        self.field.setEnabled(plays_a_part)
        self.field.setToolTip("" if plays_a_part else self._told)
        self._complain("")

    def _check(self) -> Any:
        """The value, if it can be used; else a complaint, and `...` for none."""
        text = self.field.text().strip()
        try:
            unset = not text and bool(self._empty)
            value: Any = None if unset else self._kind(text.replace(",", "."))
            self._check_value(value)
        except (ValueError, OptionError):
            told = (
                tr("Use {range}, or nothing for “{none}”.") if self._empty else tr("Use {range}.")
            )
            self._complain(told.format(range=RANGES[self._key], none=self._empty))
            return ...
        self._complain("")
        return value

    def _finish(self) -> None:
        value = self._check()
        if value is ...:
            wrong, complaint = self.field.text(), self.note.text()
            self.reset()  # what cannot be used does not stand
            refused = tr("“{value}” was not taken.").format(value=wrong)
            self._complain(f"{refused} {complaint}")
        else:
            self._value = value
            self._take(value)

    def _complain(self, text: str) -> None:
        self.note.setText(text or self._told or self._hint)
        # Of many that play no part each would say the same: its tooltip does.
        self.note.setVisible(bool(text) or self.field.isEnabled())
        self.note.setProperty("kind", "error" if text else "caption")
        self.field.setProperty("invalid", bool(text))
        self.field.setAccessibleDescription(text or self._told or self._hint)
        for widget in (self.note, self.field):
            repolish(widget)


class Group(QWidget):
    """A heading, with a button that puts what is below it back to what it is at first."""

    reset_wanted = Signal()

    def __init__(self, title: str, about: str = "Back to what it is at first") -> None:
        super().__init__()
        self.reset = QPushButton(tr("Reset"))
        self.reset.setProperty("kind", "quiet")
        self.reset.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.reset.setAccessibleName(tr("Reset: {title}").format(title=tr(title)))
        self.reset.setToolTip(tr(about))
        self.reset.clicked.connect(self.reset_wanted)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(section(title, Space.M + Space.XS, Space.XS), 1, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.reset, 0, Qt.AlignmentFlag.AlignBottom)


def choice(label: str, control: Segments) -> QWidget:
    return _ChoiceRow(label, control)


class _ChoiceRow(QWidget):
    """A label and what is chosen at its right, or below it where all of it has no room there."""

    def __init__(self, label: str, control: Segments) -> None:
        super().__init__()
        self._name, self._control = QLabel(tr(label)), control
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.addWidget(self._name)
        self._row.addStretch(1)
        self._row.addWidget(control)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        needed = self._name.sizeHint().width() + Space.M + self._control.sizeHint().width()
        direction, beside = QBoxLayout.Direction, needed <= event.size().width()
        self._row.setDirection(direction.LeftToRight if beside else direction.TopToBottom)
