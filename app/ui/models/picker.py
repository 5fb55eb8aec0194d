"""The model picker: a button with the loaded model and a list of what there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QCursor, QFont, QHideEvent, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QFrame,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app import catalog
from app.library import ModelState, ModelStatus
from app.ui.look import corners, theme
from app.ui.look.icons import IconButton
from app.ui.look.labels import broken, small, title
from app.ui.look.language import tr
from app.ui.look.theme import RADIUS, Size, Space
from app.ui.look.words import quoted
from app.ui.models.row import describe

WIDTH = 340


class ModelPicker(IconButton):
    chosen = Signal(str)
    wanted = Signal(str)  # to be got, or to be gone on with
    managed = Signal()  # the models are to be shown
    opened = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("chevron-down", "Choose a model", parent, text="Choose a model", size=14)
        self.setLayoutDirection(Qt.LayoutDirection.RightToLeft)  # the arrow after the name
        self.setFont(theme.font(Size.CONTROL, QFont.Weight.Medium))
        self._models: Sequence[ModelStatus] = ()
        self._in_use = self._named = ""
        self._short = False
        self._going = ""  # what is on its way, and how far
        self.popup = _Popup(self)
        self.popup.chosen.connect(self.chosen)
        self.popup.wanted.connect(self.wanted)
        self.popup.managed.connect(self.managed)
        self.popup.closed.connect(self._closed)
        self.clicked.connect(self._open)

    def set_models(self, models: Sequence[ModelStatus]) -> None:
        self._models = models
        self._show()

    def set_in_use(self, model: str) -> None:
        """What answers or is on its way. Where nothing does, the button still names the last one,
        and no row is ticked: it can be chosen again."""
        if model != self._in_use:
            self._in_use, self._named = model, model or self._named
            self._show()

    def set_going(self, title: str, fraction: float) -> None:
        """A model is on its way; none where `title` is empty."""
        self._going = f" · getting {title} {fraction:.0%}" if title else ""
        self._name()

    def set_short(self, short: bool) -> None:
        self._short = short
        self._name()

    def _show(self) -> None:
        self.popup.fill(self._models, self._in_use)
        self._name()

    def _name(self) -> None:
        known = catalog.find(self._named)
        titles = (m.title for m in self._models if m.id == self._named)
        title = next(titles, known.title if known else Path(self._named).name)
        kind = " · tiny demo model" if known and known.bundled else ""
        self.setText(title if self._short else f"{title}{self._going or kind}")
        self.set_label(f"Model: {title}{kind}{self._going}")

    def _open(self) -> None:
        self.opened.emit()
        self.popup.adjustSize()
        below = self.mapToGlobal(QPoint(0, self.height() + Space.XS))
        screen = self.screen().availableGeometry()
        right = screen.right() + 1 - self.popup.width()
        bottom = screen.bottom() + 1 - self.popup.height()
        self.popup.move(
            max(screen.left(), min(below.x(), right)), max(screen.top(), min(below.y(), bottom))
        )
        self.popup.show()

    def _closed(self) -> None:
        """The popup took the mouse, so that nobody told that it has left."""
        under = self.rect().contains(self.mapFromGlobal(QCursor.pos()))
        self.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, under)
        self.update()


class _Popup(QFrame):
    chosen = Signal(str)
    wanted = Signal(str)
    managed = Signal()
    closed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setAccessibleName(tr("Models"))
        outside = QVBoxLayout(self)
        outside.setContentsMargins(0, 0, 0, 0)
        self._page = QFrame()
        self._page.setProperty("kind", "popup")
        self._page.setFixedWidth(WIDTH)
        outside.addWidget(self._page)
        self._column = QVBoxLayout(self._page)
        self._column.setContentsMargins(6, 6, 6, 6)
        self._column.setSpacing(2)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        corners.cut(self, RADIUS)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.choose_row()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.closed.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter presses a row, as Space does: of a list that is expected."""
        row = self.focusWidget()
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and isinstance(row, QAbstractButton):
            row.click()
        else:
            super().keyPressEvent(event)

    def choose_row(self) -> None:
        """The keys begin at the model in use."""
        for row in self._page.findChildren(_Row):
            if row.in_use:
                row.setFocus(Qt.FocusReason.PopupFocusReason)

    def fill(self, models: Sequence[ModelStatus], in_use: str) -> None:
        while item := self._column.takeAt(0):
            if old := item.widget():
                old.deleteLater()
        for model in models:
            row = _Row(model, model.id == in_use)
            row.clicked.connect(lambda _=False, m=model: self._choose(m))
            self._column.addWidget(row)
        manage = QPushButton(tr("All models, or open one …"))
        manage.setProperty("kind", "entry")
        manage.setAccessibleName(tr("All models, or open one from this machine"))
        manage.clicked.connect(self._manage)
        self._column.addWidget(manage)

    def _choose(self, model: ModelStatus) -> None:
        self.hide()
        (self.chosen if model.usable else self.wanted).emit(model.id)

    def _manage(self) -> None:
        self.hide()
        self.managed.emit()


class _Row(QPushButton):
    """Title and, below it, what the model is or why it cannot be had."""

    def __init__(self, model: ModelStatus, in_use: bool) -> None:
        super().__init__()
        known = catalog.find(model.id)
        name = model.title
        if model.state is ModelState.AVAILABLE:
            name = tr("Get {model}").format(model=name)
        about = quoted(tr(known.summary if known and known.bundled else describe(model)))
        self.in_use = in_use and model.usable
        mark = "  ✓" if self.in_use else ""
        self.setProperty("kind", "entry")
        self.setEnabled(model.state is not ModelState.BROKEN)
        self.setAccessibleName(f"{name}. {about}")
        self.setToolTip(about if model.state is ModelState.BROKEN else "")
        head = title(f"{name}{mark}")
        if not self.isEnabled():
            head.setProperty("kind", "muted")
        text = small(broken(about))
        text.setProperty("kind", "muted")
        column = QVBoxLayout(self)
        column.setContentsMargins(10, Space.S, 10, Space.S)
        column.setSpacing(2)
        for label in (head, text):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            column.addWidget(label)
        text.setVisible(bool(about))  # of a model of the user's own there is nothing to say
        # A button's own hint knows nothing of a layout inside it.
        wraps = column.hasHeightForWidth()
        height = column.heightForWidth(WIDTH - 12) if wraps else column.sizeHint().height()
        self.setMinimumHeight(height)
