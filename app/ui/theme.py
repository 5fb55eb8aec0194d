"""The visual language: spacing, radii, type scale, the two palettes.

One accent, for three things only: the send button, the selected chat and accepted
tokens. Text colours have a contrast of at least 4.5 : 1 on every ground they are used
on (tests/ui/test_theme.py computes it).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from app import paths
from app.ui import style


class Space(IntEnum):
    """Distances in px."""

    XS = 4
    S = 8
    M = 12
    L = 16
    XL = 24


class Radius(IntEnum):
    CHIP = 6
    BUBBLE = 10


class Size:
    """Type sizes in px."""

    SMALL: Final = 12.0
    CONTROL: Final = 13.0
    CODE: Final = 13.5
    BODY: Final = 15.0
    FIGURE: Final = 26.0
    HEADINGS: Final = (22.0, 19.0, 17.0, 15.0, 15.0, 15.0)


COLUMN: Final = 720
"""The text column's greatest width in px."""

LINE_HEIGHT: Final = 124.0
"""Per cent of Inter's own line height (1.21), which together make 1.5."""

SANS: Final = "Inter"
MONO: Final = "JetBrains Mono"


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by their use. Grounds first, then what stands on them."""

    name: str
    window: str
    surface: str  # side panels
    raised: str  # bubbles, inputs, chosen segments
    code: str  # ground of code
    hover: str
    selection: str
    line: str
    line_strong: str  # borders of controls, tracks of meters
    text: str
    muted: str
    accent: str
    on_accent: str
    danger: str
    danger_ground: str
    keyword: str
    string: str
    number: str
    name_: str


LIGHT: Final = Palette(
    name="light",
    window="#FBFBF9",
    surface="#F4F4F1",
    raised="#FFFFFF",
    code="#F3F3EF",
    hover="#EAEAE5",
    selection="#D3DDE6",
    line="#E4E4DE",
    line_strong="#C9C9C1",
    text="#1B1E20",
    muted="#5A6066",
    accent="#0B7461",
    on_accent="#FFFFFF",
    danger="#A32018",
    danger_ground="#FBECEA",
    keyword="#7B3A99",
    string="#3A6A1F",
    number="#9A4608",
    name_="#1D5A9C",
)

DARK: Final = Palette(
    name="dark",
    window="#131517",
    surface="#181B1D",
    raised="#212528",
    code="#1B1F21",
    hover="#282D31",
    selection="#34444F",
    line="#272C2F",
    line_strong="#414950",
    text="#E6E8E9",
    muted="#9BA3A9",
    accent="#45C4A6",
    on_accent="#05221B",
    danger="#FF9287",
    danger_ground="#2D1C1A",
    keyword="#CBA8F0",
    string="#A6CF8C",
    number="#E7B380",
    name_="#8FBEF2",
)


class Theme(QObject):
    """The palette in use: the user's choice, or the system's where it is `system`."""

    changed = Signal()

    def __init__(self, app: QApplication, choice: str = "system") -> None:
        super().__init__(app)
        self._app = app
        self._choice = choice
        load_fonts()
        app.setStyle("Fusion")
        app.setFont(font(Size.CONTROL))
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._apply)
        self._apply()

    def choose(self, choice: str) -> None:
        self._choice = choice
        self._apply()

    def _apply(self) -> None:
        dark = self._choice == "dark"
        if self._choice == "system":
            dark = QGuiApplication.styleHints().colorScheme() is Qt.ColorScheme.Dark
        wanted = DARK if dark else LIGHT
        if _current.palette is wanted and self._app.styleSheet():
            return
        _current.palette = wanted
        self._app.setPalette(_qpalette(wanted))
        self._app.setStyleSheet(style.sheet(wanted))
        self.changed.emit()


class _Current:
    palette: Palette = LIGHT


_current: Final = _Current()


def current() -> Palette:
    """The palette that painters use; a change repaints every widget."""
    return _current.palette


def colour(value: str, alpha: float = 1.0) -> QColor:
    result = QColor(value)
    result.setAlphaF(alpha)
    return result


def font(px: float, weight: QFont.Weight = QFont.Weight.Normal, family: str = SANS) -> QFont:
    """A font of `px` pixels. By points, because pixel sizes cannot be fractions."""
    result = QFont([family, "Noto Sans", "Noto Color Emoji"])
    result.setPointSizeF(points(px))
    result.setWeight(weight)
    if family == MONO:
        result.setStyleHint(QFont.StyleHint.Monospace)
    return result


def points(px: float) -> float:
    return px * 72.0 / QGuiApplication.primaryScreen().logicalDotsPerInchY()


def load_fonts() -> None:
    for file in sorted((paths.assets() / "fonts").glob("*.[ot]tf")):
        QFontDatabase.addApplicationFont(str(file))


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two sRGB colours, 1 to 21 (WCAG 2.2, 1.4.3)."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(value: str) -> float:
    channels = (int(value[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


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
