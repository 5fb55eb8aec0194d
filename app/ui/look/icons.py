"""Icons of assets/icons in the palette's colours."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from PySide6.QtCore import QByteArray, QEvent, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPaintEvent, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QToolButton, QWidget

from app import paths
from app.ui.look import announce, theme
from app.ui.look.language import tr

CONFIRM_MS: Final = 1_500

_BESIDE: Final = 4
"""Px between an icon and its text, over those that Qt leaves."""


@lru_cache(maxsize=256)
def pixmap(name: str, colour: str, size: int, ratio: float, beside: int = 0) -> QPixmap:
    """Icon `name`, `size` px wide, for a screen of `ratio` device pixels a px.

    `beside` px at its right are empty.
    """
    svg = (paths.assets() / "icons" / f"{name}.svg").read_text(encoding="utf-8")
    renderer = QSvgRenderer(QByteArray(svg.replace("currentColor", colour).encode()))
    result = QPixmap(round((size + beside) * ratio), round(size * ratio))
    result.setDevicePixelRatio(ratio)
    result.fill(Qt.GlobalColor.transparent)
    painter = QPainter(result)
    renderer.render(painter, QRectF(0, 0, size, size))
    painter.end()
    return result


def icon(name: str, colour: str, size: int, beside: int = 0) -> QIcon:
    """For the finest screen that there is; on a coarser one Qt takes it smaller."""
    app = QGuiApplication.instance()
    ratio = app.devicePixelRatio() if isinstance(app, QGuiApplication) else 1.0
    return _icon(name, colour, size, ratio, beside)


@lru_cache(maxsize=256)
def _icon(name: str, colour: str, size: int, ratio: float, beside: int) -> QIcon:
    result = QIcon()
    result.addPixmap(pixmap(name, colour, size, ratio, beside))
    return result


def beside_text(size: int) -> int:
    """Px of an icon that is `size` px wide beside text of its usual size: it grows with the text.

    Beside smaller text it stays, to be hit easily.
    """
    return round(size * max(theme.scale(), 1.0))


class IconButton(QToolButton):
    """A tool button whose icon follows the palette and the size of text. `label` is name and
    tooltip."""

    def __init__(
        self,
        name: str,
        label: str,
        parent: QWidget | None = None,
        *,
        kind: str = "icon",
        role: str = "muted",
        text: str = "",
        size: int = 18,
    ) -> None:
        super().__init__(parent)
        self._icon_name, self._role = name, role
        self.setProperty("kind", kind)
        self._size, self._beside = size, 0
        self.setText(tr(text))
        if text:
            self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        # A click leaves the focus where a person goes on typing.
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.set_label(label)
        self._paint_icon()

    def setToolButtonStyle(self, style: Qt.ToolButtonStyle) -> None:
        super().setToolButtonStyle(style)
        self._beside = _BESIDE if style is Qt.ToolButtonStyle.ToolButtonTextBesideIcon else 0
        self._paint_icon()

    def set_label(self, label: str) -> None:
        self.setToolTip(tr(label))
        self.setAccessibleName(tr(label))

    def set_icon(self, name: str) -> None:
        self._icon_name = name
        self._paint_icon()

    def confirm(self, done: str) -> None:
        """Show for a moment that it was done; `done` says so."""
        announce.say(self, tr(done))
        usual, self._icon_name = self._icon_name, "check"
        self._paint_icon()
        if usual != "check":
            QTimer.singleShot(CONFIRM_MS, self, lambda: self.set_icon(usual))

    def sizeHint(self) -> QSize:
        result = super().sizeHint()
        if self._beside:  # Qt leaves two blanks behind the text, and nothing before the icon
            result.setWidth(result.width() - 2 * self.fontMetrics().horizontalAdvance(" ") - 2)
        return result

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.EnabledChange):
            self._paint_icon()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self._paint_icon()
        return super().event(event)

    def _paint_icon(self) -> None:
        role = self._role if self.isEnabled() else "muted"
        colour = getattr(theme.current(), role)
        size = beside_text(self._size)
        self.setIconSize(QSize(size + self._beside, size))
        self.setIcon(icon(self._icon_name, colour, size, self._beside))


class Sign(QWidget):
    """An icon that is no button."""

    def __init__(self, name: str, role: str, size: int = 18) -> None:
        super().__init__()
        self._name, self._role, self._size = name, role, size
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._fit()

    def _fit(self) -> None:
        size = beside_text(self._size)
        self.setFixedSize(size, size)

    def paintEvent(self, event: QPaintEvent) -> None:
        colour = getattr(theme.current(), self._role)
        painter = QPainter(self)
        painter.drawPixmap(0, 0, pixmap(self._name, colour, self.width(), self.devicePixelRatioF()))
