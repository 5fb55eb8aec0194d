"""The passport of a pair, as people read it: what it was made from, how, and whether it works."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app import catalog
from app.passport import Made, Passport, Source
from app.ui.look import theme, words
from app.ui.look.labels import small
from app.ui.look.theme import Space

_SIDE_BY_SIDE: Final = 300
"""Width in px, at the usual size of text, from which on there is room for two columns."""

_WORST: Final = 3  # tensors whose errors are shown
_ROLES: Final = {"target": "Target", "draft": "Drafter"}


class PassportView(QWidget):
    """Two columns, or one where it is narrow; every value can be selected and copied."""

    def __init__(self, passport: Passport, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(f"Passport of {passport.title}")
        self._rows: list[tuple[QLabel, QLabel]] = []
        self._beside = False
        for name, value in lines(passport):
            label, text = small(name), small(value)
            label.setProperty("kind", "muted")
            label.setWordWrap(False)
            text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            text.setAccessibleName(f"{name}: {value}" if name else value)
            self._rows.append((label, text))
        self._grid = grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(Space.L)
        grid.setColumnStretch(1, 1)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        beside = event.size().width() >= _SIDE_BY_SIDE * theme.scale()
        if beside != self._beside:
            self._beside = beside
            self._arrange()

    def _arrange(self) -> None:
        """Each value beside its name, or below it."""
        for at, (label, text) in enumerate(self._rows):
            if self._beside:
                self._grid.addWidget(label, at, 0, Qt.AlignmentFlag.AlignTop)
                self._grid.addWidget(text, at, 1)
            else:
                self._grid.addWidget(label, 2 * at, 0, 1, 2)
                self._grid.addWidget(text, 2 * at + 1, 0, 1, 2)
        self._grid.setVerticalSpacing(Space.S if self._beside else Space.XS)


def lines(passport: Passport) -> list[tuple[str, str]]:
    """What stands at the left and at the right."""
    return [
        *((_ROLES[role], _source(source)) for role, source in passport.sources.items()),
        ("Stored as", _stored(passport)),
        *((f"{_ROLES[role]} file", _file(made)) for role, made in passport.files.items()),
        ("Converted", f"{passport.made[:10]} by {passport.converter}"),
        ("Tried out", "\n".join(_checks(passport)) or "not yet"),
    ]


def _source(source: Source) -> str:
    if not source.commit:
        return f"{source.repo}\nfrom this machine"
    licence = source.licence or "not told"
    return f"{source.repo}\ncommit {source.commit[:12]} · licence: {licence}"


def _stored(passport: Passport) -> str:
    kind = catalog.TYPES.get(passport.type, passport.type.upper())
    recipes = {str(made.about.get("recipe") or "") for made in passport.files.values()} - {""}
    if len(catalog.stored(passport.type)) < 2 or not recipes:
        return kind
    told = " and ".join(sorted(catalog.RECIPES.get(one, one) for one in recipes))
    return f"{kind}, {told} recipe"


def _file(made: Made) -> str:
    text = f"{made.name} · {words.size(made.bytes)}\nsha256 {made.sha256[:16]}…"
    errors = made.about.get("errors") or ()
    worst = sorted(errors, key=lambda e: -float(e["error"]))[:_WORST]
    told = "".join(f"\n{e['error']:.1%} {e['name']}, {e['kind'].upper()}" for e in worst)
    return f"{text}\nlargest errors:{told}" if told else text


def _checks(passport: Passport) -> list[str]:
    return [f"{'✓' if c.ok else '✗'} {c.name}: {c.detail}" for c in passport.checks]
