"""One model of the library: what it is, and what can be done with it."""

from __future__ import annotations

import datetime

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QPushButton, QVBoxLayout, QWidget

from app import catalog
from app.library import ModelState, ModelStatus
from app.ui.look import words
from app.ui.look.icons import IconButton
from app.ui.look.labels import broken, small, title
from app.ui.look.language import tr
from app.ui.look.theme import Space
from app.ui.models.passport import PassportView


class ModelRow(QFrame):
    chosen = Signal(str)
    got = Signal(str)
    verified = Signal(str)
    shown_in_folder = Signal(str)
    removed = Signal(str)

    def __init__(self, model: ModelStatus, in_use: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = model
        self.setProperty("kind", "card")
        self.setAccessibleName(model.title)
        head = title(model.title)
        about = small(broken(describe(model), 12))
        about.setProperty("kind", "error" if model.state is ModelState.BROKEN else "muted")
        self.passport: PassportView | None = None  # where it is shown
        text = QVBoxLayout()
        text.setSpacing(2)
        text.addWidget(head)
        text.addWidget(about)
        row = QHBoxLayout()
        row.setSpacing(Space.S)
        row.addLayout(text, 1)
        self.main = QPushButton()
        # The one button for who has only the built-in guide.
        first = model.state is ModelState.AVAILABLE and model.id == catalog.FIRST
        self.main.setProperty("kind", "primary" if first else "outline")
        self.main.setCursor(Qt.CursorShape.PointingHandCursor)
        if model.state is ModelState.AVAILABLE:
            self._act("Get", lambda: self.got.emit(model.id))
        elif in_use:
            self._act("In use", lambda: None)
            self.main.setEnabled(False)
        else:
            self._act("Use", lambda: self.chosen.emit(model.id))
            self.main.setEnabled(model.usable)
        row.addWidget(self.main, 0, Qt.AlignmentFlag.AlignTop)
        self.more = IconButton("more", f"More for {model.title}")
        self.more.clicked.connect(self._open_menu)
        known = catalog.find(model.id)
        own = model.path is not None and not (known and known.bundled)
        row.addWidget(self.more, 0, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.L, Space.M, Space.M, Space.M)
        column.setSpacing(Space.S)
        column.addLayout(row)
        self.more.setVisible(own)  # here: without a parent it would be a window of its own
        self._column = column

    @property
    def stops(self) -> tuple[QWidget, ...]:
        """Where the keys go on in it, the first that can."""
        return (self.main, self.more)

    def menu(self) -> QMenu:
        """Made when it is wanted."""
        model = self.model
        menu = QMenu(self)
        if model.passport is not None:
            label = "Hide the passport" if self.passport else "Show the passport"
            menu.addAction(tr(label)).triggered.connect(self.toggle_passport)
            menu.addAction(tr("Verify again")).triggered.connect(
                lambda: self.verified.emit(model.id)
            )
        menu.addAction(tr("Open its folder")).triggered.connect(
            lambda: self.shown_in_folder.emit(model.id)
        )
        menu.addSeparator()
        menu.addAction(tr("Move to the trash")).triggered.connect(
            lambda: self.removed.emit(model.id)
        )
        return menu

    def _open_menu(self) -> None:
        self.menu().popup(self.more.mapToGlobal(QPoint(0, self.more.height())))

    def toggle_passport(self) -> None:
        if self.passport is not None:
            self.passport.hide()
            self.passport.deleteLater()
            self.passport = None
        elif self.model.passport is not None:
            self.passport = PassportView(self.model.passport, self)
            self._column.addWidget(self.passport)
            self.passport.show()

    def _act(self, label: str, action: object) -> None:
        self.main.setText(tr(label))
        self.main.setAccessibleName(f"{tr(label)}: {self.model.title}")
        self.main.clicked.connect(lambda: action())  # type: ignore[operator]


def describe(model: ModelStatus) -> str:
    """Size, type and last use; or what it is; or what is wrong with it."""
    known = catalog.find(model.id)
    if not model.usable:
        return model.reason or (known.summary if known else "")
    parts = [words.size(model.bytes)] if model.bytes else []
    if model.passport is not None:
        parts.append(catalog.TYPES.get(model.passport.type, model.passport.type.upper()))
        if len(catalog.stored(model.passport.type)) > 1:
            about = (made.about.get("recipe") for made in model.passport.files.values())
            recipe = catalog.RECIPES.get(str(next(about, "")), "")
            parts += [f"{recipe} recipe"] if recipe else []
    if model.used is not None:
        parts.append(f"used {_day(model.used)}")
    if known and known.bundled:
        parts.insert(0, "Comes with Slipstream")
    line = " · ".join(parts)
    return f"{line}\n{model.reason}" if model.reason and model.passport else line


def _day(seconds: float) -> str:
    day = datetime.datetime.fromtimestamp(seconds).date()
    ago = (datetime.date.today() - day).days
    return {0: "today", 1: "yesterday"}.get(ago, day.isoformat())
