"""The visual language: spacing, type scale, the palette in use."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontMetricsF, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from app import paths
from app.ui.look import style
from app.ui.look.palette import DARK, LIGHT, Palette


class Space(IntEnum):
    """Distances in px."""

    XS = 4
    S = 8
    M = 12
    L = 16
    XL = 24


class Size:
    """Type sizes in px."""

    SMALL: Final = 12.0
    CONTROL: Final = 13.0
    CODE: Final = 13.5
    BODY: Final = 15.0
    FIGURE: Final = 26.0
    HEADINGS: Final = (22.0, 19.0, 17.0, 15.0, 15.0, 15.0)


RADIUS: Final = 10
"""Corner radius in px of bubbles, inputs and code."""

COLUMN: Final = 720
"""The text column's greatest width in px."""

LINE_HEIGHT: Final = 124.0
"""Per cent of Inter's own line height (1.21), which together make 1.5."""

SANS: Final = "Inter"
MONO: Final = "JetBrains Mono"


class Theme(QObject):
    """The palette in use: the user's choice, or the system's where it is `system`."""

    def __init__(self, app: QApplication, choice: str = "system", text_size: int = 15) -> None:
        super().__init__(app)
        self._app = app
        self._choice = choice
        _current.scale = text_size / Size.BODY
        load_fonts()
        app.setStyle("Fusion")
        app.setFont(font(Size.CONTROL))
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._apply)
        self._apply()

    def choose(self, choice: str) -> None:
        self._choice = choice
        self._apply()

    def set_text_size(self, px: int) -> None:
        """Of the body, in px; all other sizes keep their ratio to it."""
        before, _current.scale = _current.scale, px / Size.BODY
        ratio = _current.scale / before
        if ratio == 1:
            return
        self._app.setFont(font(Size.CONTROL))
        self._restyle(self._app.styleSheet(), ratio)
        self._write_anew()

    def set_code_wrap(self, wrap: bool) -> None:
        """Whether long lines of code are wrapped, or go on to be scrolled to."""
        before, _current.wrap = _current.wrap, wrap
        if wrap != before:
            self._write_anew()

    def _write_anew(self) -> None:
        """Have documents written as is chosen now.

        They have their looks from when they were written: another palette's event has them
        written again, and its object says that there is something new.
        """
        _current.palette = replace(_current.palette)
        for widget in self._app.allWidgets():
            QApplication.sendEvent(widget, QEvent(QEvent.Type.PaletteChange))

    def _apply(self) -> None:
        dark = self._choice == "dark"
        if self._choice == "system":
            dark = QGuiApplication.styleHints().colorScheme() is Qt.ColorScheme.Dark
        wanted = DARK if dark else LIGHT
        if _current.palette == wanted and self._app.styleSheet():
            return
        _current.palette = wanted
        self._app.setPalette(_qpalette(wanted))
        self._restyle(style.sheet(wanted))

    def _restyle(self, sheet: str, ratio: float = 1.0) -> None:
        """Qt hands the application's font on, and gives a widget with a font of its own the one
        that it had at first: it keeps the one that it has now, times `ratio`.
        """
        own = [
            (widget, widget.font())
            for widget in self._app.allWidgets()
            if widget.testAttribute(Qt.WidgetAttribute.WA_SetFont)
        ]
        self._app.setStyleSheet(sheet)
        for widget, now in own:
            if (size := now.pointSizeF()) > 0:
                now.setPointSizeF(size * ratio)
                widget.setFont(now)


class _Current:
    palette: Palette = LIGHT
    scale: float = 1.0
    wrap: bool = True


_current: Final = _Current()


def current() -> Palette:
    """The palette that painters use; a change repaints every widget."""
    return _current.palette


def scale() -> float:
    """Of all sizes of type, over their usual ones."""
    return _current.scale


def wraps_code() -> bool:
    return _current.wrap


def colour(value: str, alpha: float = 1.0) -> QColor:
    result = QColor(value)
    result.setAlphaF(alpha)
    return result


def font(px: float, weight: QFont.Weight = QFont.Weight.Normal, family: str = SANS) -> QFont:
    """A font of `px` pixels. By points, because pixel sizes cannot be fractions."""
    result = QFont([family, "Noto Sans", "Noto Color Emoji"])
    result.setPointSizeF(points(px * _current.scale))
    result.setWeight(weight)
    if family == MONO:
        result.setStyleHint(QFont.StyleHint.Monospace)
        without_ligatures(result)
    return result


def without_ligatures(font: QFont) -> None:
    """Code and keys are shown sign by sign: `->` is no arrow."""
    for feature in ("calt", "liga"):
        font.setFeature(QFont.Tag(feature), 0)


def x_height(px: float) -> float:
    """Of small letters, in px."""
    return QFontMetricsF(font(px)).xHeight()


def points(px: float) -> float:
    return px * 72.0 / QGuiApplication.primaryScreen().logicalDotsPerInchY()


def load_fonts() -> None:
    for file in sorted((paths.assets() / "fonts").glob("*.[ot]tf")):
        QFontDatabase.addApplicationFont(str(file))


def _qpalette(palette: Palette) -> QPalette:
    role = QPalette.ColorRole
    result = QPalette()
    for where, value in {
        role.Window: palette.window,
        role.WindowText: palette.text,
        role.Base: palette.window,
        role.AlternateBase: palette.surface,
        role.Text: palette.text,
        role.Button: palette.surface,
        role.ButtonText: palette.text,
        role.PlaceholderText: palette.muted,
        role.Highlight: palette.selection,
        role.HighlightedText: palette.text,
        role.Link: palette.text,
        role.LinkVisited: palette.text,
        role.ToolTipBase: palette.raised,
        role.ToolTipText: palette.text,
        role.Accent: palette.accent,
    }.items():
        result.setColor(where, QColor(value))
    for where in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, where, QColor(palette.muted))
    return result
