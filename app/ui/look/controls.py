"""Small controls that several parts of the window share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from PySide6.QtCore import QEvent, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QButtonGroup,
    QFrame,
    QLabel,
    QLayout,
    QScrollBar,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from app.ui.look.flow import Flow
from app.ui.look.labels import tip
from app.ui.look.language import tr

_ENTER: Final = (Qt.Key.Key_Return, Qt.Key.Key_Enter)

_NEAR: Final = 48
"""Pixels from the end of a text within which scrolling down leads to following it."""


def press_focused(event: QKeyEvent) -> bool:
    """Enter presses the button that has the focus, as Space does; whether it did.

    For windows and popups: Qt has that for dialogs only.
    """
    focused = QApplication.focusWidget()
    if event.key() not in _ENTER or not isinstance(focused, QAbstractButton):
        return False
    focused.animateClick()
    return True


def claim_escape(event: QEvent) -> bool:
    """Have Escape come as a key to whoever is asked, before it is the window's Stop; whether
    it was asked for."""
    override = event.type() == QEvent.Type.ShortcutOverride
    if override and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
        event.accept()
        return True
    return False


def holds_focus(widget: QWidget) -> bool:
    """Whether the focus is within a widget."""
    focused = QApplication.focusWidget()
    return focused is not None and widget.isAncestorOf(focused)


def is_followed(bar: QScrollBar, before: int) -> bool:
    """Whether what `bar` scrolls is kept at its end as it grows, now that it was at `before`.

    Going up always leaves the end: a touchpad does so by a few pixels at a time.
    """
    near = 0 if bar.value() < before else _NEAR
    return bar.value() >= bar.maximum() - near


def order_tabs(layout: QLayout) -> None:
    """Have Tab go through a layout as it is read: Qt goes by when each was made."""
    link_tabs(_in_order(layout))


def link_tabs(stops: Iterable[QWidget]) -> None:
    """Have Tab go from one of these to the next."""
    before: QWidget | None = None
    for widget in stops:
        if before is not None:
            QWidget.setTabOrder(before, widget)
        before = widget


def _in_order(layout: QLayout) -> Iterator[QWidget]:
    for at in range(layout.count()):
        item = layout.itemAt(at)
        if item is None:
            continue
        if (inner := item.layout()) is not None:
            yield from _in_order(inner)
        elif (widget := item.widget()) is not None:
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
                yield widget
            elif (own := widget.layout()) is not None:
                yield from _in_order(own)


def repolish(widget: QWidget) -> None:
    """Have the style read the widget's properties again."""
    widget.style().unpolish(widget)
    widget.style().polish(widget)


def is_paging(event: QKeyEvent) -> bool:
    """Whether a key scrolls by a page."""
    keys = QKeySequence.StandardKey
    return event.matches(keys.MoveToPreviousPage) or event.matches(keys.MoveToNextPage)


def is_text(event: QKeyEvent) -> bool:
    """Whether a key writes something, and is no shortcut. Space presses what has the focus."""
    # Where AltGr writes, it is told as Ctrl and Alt together on some systems.
    modifiers = event.modifiers()
    control = bool(modifiers & Qt.KeyboardModifier.ControlModifier)
    alt = bool(modifiers & Qt.KeyboardModifier.AltModifier)
    meta = bool(modifiers & Qt.KeyboardModifier.MetaModifier)
    return event.text().isprintable() and event.text() != "" and control == alt and not meta


class Elided(QLabel):
    """A line that takes what room there is, and tells the rest in its tooltip."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._whole = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def whole(self) -> str:
        return self._whole

    def set_text(self, text: str) -> None:
        self._whole = text
        self.setAccessibleName(text)
        self.setToolTip(tip(text))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        right = Qt.TextElideMode.ElideRight
        self.setText(self.fontMetrics().elidedText(self._whole, right, self.width()))


class _Segment(QToolButton):
    """Tells that it was chosen: by a click or a key, or by an assistive program, which toggles
    it and clicks nothing."""

    chosen = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._clicking = False
        self.setCheckable(True)
        self.clicked.connect(self.chosen)
        self.toggled.connect(self._toggled)

    def nextCheckState(self) -> None:
        self._clicking = True
        super().nextCheckState()
        self._clicking = False

    def _toggled(self, on: bool) -> None:
        if on and not self._clicking:
            self.chosen.emit()


class Segments(QFrame):
    """One choice of a few, side by side where there is room. Keys are what the program calls
    them."""

    chosen = Signal(str)

    def __init__(self, name: str, choices: dict[str, str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "segments")
        self._name = tr(name)
        self.setAccessibleName(self._name)
        self._group = QButtonGroup(self)
        self._buttons: dict[str, _Segment] = {}
        row = Flow(self, even=True)
        for key, label in choices.items():
            button = _Segment()
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            button.chosen.connect(lambda k=key: self.chosen.emit(k))
            self._group.addButton(button)
            self._buttons[key] = button
            self.set_label(key, label)
            row.addWidget(button)

    def button(self, key: str) -> QToolButton:
        return self._buttons[key]

    def choice(self) -> str:
        return next((k for k, b in self._buttons.items() if b.isChecked()), "")

    def choose(self, key: str) -> None:
        """Show `key` as chosen, or nothing where it is none of the choices, without telling it."""
        if key in self._buttons:
            with QSignalBlocker(self._buttons[key]):
                self._buttons[key].setChecked(True)
        elif (checked := self._group.checkedButton()) is not None:
            self._group.setExclusive(False)  # of an exclusive group, one stays chosen
            checked.setChecked(False)
            self._group.setExclusive(True)

    def set_label(self, key: str, label: str) -> None:
        self._buttons[key].setText(tr(label))
        self._buttons[key].setAccessibleName(f"{self._name}: {tr(label)}")

    def set_available(self, key: str, reason: str = "", about: str = "") -> None:
        """Grey `key` out if there is a reason; else `about` is its tooltip."""
        button = self._buttons[key]
        button.setEnabled(not reason)
        button.setToolTip(tr(reason or about))
        button.setAccessibleDescription(tr(reason or about))
