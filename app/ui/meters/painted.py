"""The painted meters. Each says the same in words, for a screen reader.

Accepted tokens are filled, with a hole where they came from the text so far; rejected ones
hollow and struck through, the target's own token dotted: the sign is never the colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHelpEvent,
    QImage,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.engine import Origin, RoundRecord
from app.ui.look import theme
from app.ui.look.labels import tip
from app.ui.look.language import tr
from app.ui.look.palette import Palette
from app.ui.look.theme import Space

CELL: Final = 11
GAP: Final = 3


class Painted(QWidget):
    def __init__(self, name: str, height: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr(name))
        self.setFixedHeight(height)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.painted = 0
        """How often it was painted, for the test that it is not too often."""

    def say(self, text: str) -> None:
        """It is painted anew where it says something else."""
        if self.accessibleDescription() != text:
            self.setAccessibleDescription(text)
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        self.painted += 1
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.draw(painter)
        painter.end()

    def draw(self, painter: QPainter) -> None:
        raise NotImplementedError

    def sizeHint(self) -> QSize:
        return QSize(200, self.height())


class Sparkline(Painted):
    """The rate over the last rounds, with the plain rate as a dashed line."""

    def __init__(self) -> None:
        super().__init__("Tokens per second over the last rounds", 44)
        self._rates: Sequence[float] = ()
        self._plain: float | None = None

    def show_rates(self, rates: Sequence[float], plain: float | None) -> None:
        if (tuple(rates), plain) != (self._rates, self._plain):
            self.update()
        self._rates, self._plain = tuple(rates), plain
        if rates:
            low, high, now = min(rates), max(rates), rates[-1]
            self.say(f"from {low:.0f} to {high:.0f}, now {now:.0f} tokens per second")
        else:
            self.say("no rounds yet")

    def draw(self, painter: QPainter) -> None:
        colours = theme.current()
        area = QRectF(self.rect()).adjusted(1, 3, -1, -2)
        top = max([*self._rates, (self._plain or 0) * 1.25, 1.0])
        painter.setPen(QPen(QColor(colours.line), 1))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        if self._plain:
            y = area.bottom() - area.height() * self._plain / top
            painter.setPen(QPen(QColor(colours.muted), 1, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        if len(self._rates) < 2:
            return
        step = area.width() / (len(self._rates) - 1)
        line = QPolygonF(
            [
                QPointF(area.left() + i * step, area.bottom() - area.height() * rate / top)
                for i, rate in enumerate(self._rates)
            ]
        )
        filled = QPolygonF(line)
        filled.append(area.bottomRight())
        filled.append(area.bottomLeft())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour(colours.text, 0.07))
        # Its edge is under the line. Smoothed it costs three times as much, and a line that is
        # any wider than 1 px ten times.
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.drawPolygon(filled)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(colours.text), 1))
        painter.drawPolyline(line)


class PositionBars(Painted):
    """Share of rounds in which each drafted position was accepted."""

    def __init__(self) -> None:
        super().__init__("Acceptance by position in the block", 56)
        self._shares: list[float | None] = []
        self._places = 15

    def show_shares(self, shares: list[float | None], places: int) -> None:
        """A share of None is not told: too few rounds drafted the position."""
        before, self._places = self._places, max(1, places, len(shares))
        self._shares = shares
        if self._places != before:
            self.update()
        known = [(i, share) for i, share in enumerate(shares, 1) if share is not None]
        text = ", ".join(f"{i}: {share:.0%}" for i, share in known)
        self.say(text or "too little drafted yet")
        if text != self.toolTip():
            self.setToolTip(text)

    def draw(self, painter: QPainter) -> None:
        colours = theme.current()
        base = self.height() - 14.0
        width = (self.width() + GAP) / self._places - GAP
        painter.setFont(theme.font(10))
        for i in range(self._places):
            x = i * (width + GAP)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.line))
            painter.drawRoundedRect(QRectF(x, base - 2, width, 2), 1, 1)
            share = self._shares[i] if i < len(self._shares) else None
            if share:
                height = max(2.0, (base - 2) * share)
                painter.setBrush(QColor(colours.accent))
                painter.drawRoundedRect(QRectF(x, base - height, width, height), 2, 2)
            if i == 0 or (i + 1) % 5 == 0:
                painter.setPen(QColor(colours.muted))
                label = QRectF(x - 8, base + 2, width + 16, 12)
                painter.drawText(label, Qt.AlignmentFlag.AlignCenter, str(i + 1))


class BlockStrip(Painted):
    """The last blocks, newest on top; a row is one round."""

    def __init__(self, rows: int) -> None:
        super().__init__("Last blocks", rows * (CELL + GAP + 2))
        self._rows = rows
        self._records: list[RoundRecord] = []

    def show_records(self, records: Sequence[RoundRecord]) -> None:
        self._records = list(records)[-self._rows :][::-1]
        text = "; ".join(_describe(r) for r in self._records)
        self.say(text or "no rounds yet")

    def cells(self, row: int) -> list[tuple[str, str]]:
        """Sign and token of each cell of a row: accepted, copied, rejected or replaced.

        The target's own token stands where the first rejected one would have been.
        """
        record = self._records[row]
        held = record.emitted[: record.accepted]
        kept = [("accepted" if i < record.own else "copied", text) for i, text in enumerate(held)]
        own = [("replaced", text) for text in record.emitted[record.accepted :]]
        lost = [("rejected", text) for text in record.drafted[record.accepted :]]
        return kept + own + lost

    def draw(self, painter: QPainter) -> None:
        places: dict[str, list[QRectF]] = {}
        for row in range(self._rows):
            cells = self.cells(row) if row < len(self._records) else [("none", "")] * 16
            for column, (sign, _) in enumerate(cells):
                places.setdefault(sign, []).append(self._place(row, column))
        for sign, some in places.items():
            draw_cells(painter, sign, some)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), tip(self._told_at(event.pos())), self)
            return True
        return super().event(event)

    def _place(self, row: int, column: int) -> QRectF:
        pitch = min(CELL + GAP, (self.width() + GAP) / 17)
        y = row * (CELL + GAP + 2)
        return QRectF(column * pitch, y, pitch - GAP, CELL)

    def _told_at(self, point: QPoint) -> str:
        for row in range(len(self._records)):
            for column, (sign, text) in enumerate(self.cells(row)):
                if self._place(row, column).contains(QPointF(point)):
                    return f"{sign}: “{text}”"
        return ""


def draw_cells(painter: QPainter, sign: str, places: Sequence[QRectF]) -> None:
    """Cells of one sign and one size: the picture of one, wherever it belongs."""
    device = painter.device()
    ratio = device.devicePixelRatio() if device else 1.0
    size = places[0].size()
    cell = _cell(sign, size.width(), size.height(), ratio, theme.current())
    for place in places:
        painter.drawImage(place.topLeft(), cell)


@lru_cache(maxsize=64)
def _cell(sign: str, width: float, height: float, ratio: float, colours: Palette) -> QImage:
    """Kept, because a rounded shape costs twenty times what its picture does."""
    result = QImage(
        math.ceil(width * ratio),
        math.ceil(height * ratio),
        QImage.Format.Format_ARGB32_Premultiplied,
    )
    result.setDevicePixelRatio(ratio)
    result.fill(Qt.GlobalColor.transparent)
    painter = QPainter(result)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    place = QRectF(0, 0, width, height)
    inner, middle = place.adjusted(0.5, 0.5, -0.5, -0.5), place.center()
    if sign == "replaced":
        painter.setPen(QPen(QColor(colours.text), 1.2, Qt.PenStyle.DotLine))
        painter.drawRoundedRect(inner, 2.5, 2.5)
    elif sign == "rejected":
        painter.setPen(QPen(QColor(colours.muted), 1))
        painter.drawRoundedRect(inner, 2.5, 2.5)
        painter.drawLine(QPointF(2, middle.y()), QPointF(width - 2, middle.y()))
    else:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours.line if sign == "none" else colours.accent))
        if sign != "none":
            painter.drawRoundedRect(place, 2.5, 2.5)
        if sign == "copied":
            painter.setBrush(QColor(colours.surface))
            painter.drawEllipse(middle, 2, 2)
        elif sign == "none":
            painter.drawEllipse(middle, 1.5, 1.5)
    painter.end()
    return result


_SOURCES: Final = {
    Origin.DRAFTER: "",
    Origin.LOOKUP: " from the chat",
    Origin.BOTH: " in part from the chat",
}


def _describe(record: RoundRecord) -> str:
    own = "".join(record.emitted[record.accepted :])
    source = _SOURCES[record.origin]
    return f"{record.accepted} of {len(record.drafted)}{source} accepted, then “{own}”"


class Legend(Painted):
    """What the cells of the strip mean, drawn as they are drawn there."""

    _SIGNS: Final = ("accepted", "rejected", "replaced", "copied")
    _LINE: Final = 16

    def __init__(self) -> None:
        super().__init__("Signs of the strip", self._LINE)
        self.say(
            "filled: accepted; struck: rejected; dotted: replaced by the model's own token; "
            "with a hole: accepted, copied from the chat"
        )

    def places(self) -> list[tuple[float, float]]:
        """Where each sign begins: as many side by side as there is room for, in columns."""
        metrics = QFontMetricsF(theme.font(11))
        line = max(self._LINE, metrics.height())
        widths = [CELL + 5 + metrics.horizontalAdvance(tr(sign)) + Space.M for sign in self._SIGNS]
        for columns in (4, 2, 1):
            wide = [max(widths[column::columns]) for column in range(columns)]
            if sum(wide) - Space.M <= self.width():
                break
        return [(sum(wide[: n % columns]), n // columns * line) for n in range(len(self._SIGNS))]

    def draw(self, painter: QPainter) -> None:
        painter.setFont(theme.font(11))
        for sign, (x, y) in zip(self._SIGNS, self.places(), strict=True):
            draw_cells(painter, sign, [QRectF(x, y + 3, CELL, CELL)])
            painter.setPen(QColor(theme.current().muted))
            painter.drawText(QPointF(x + CELL + 5, y + 12.5), tr(sign))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.setFixedHeight(math.ceil(self.places()[-1][1]) + self._LINE)


class RoundBar(Painted):
    """A round's milliseconds: draft, verify, host, told apart by pattern."""

    _ALPHAS: Final = (0.85, 0.45, 0.2)

    def __init__(self) -> None:
        super().__init__("Time of a round", 32)
        self._parts: list[tuple[str, float]] = []

    def show_parts(self, parts: list[tuple[str, float]]) -> None:
        self._parts = parts
        text = ", ".join(f"{name} {part:.1f} ms" for name, part in parts)
        self.say(text if any(part > 0 for _, part in parts) else "no rounds yet")

    def draw(self, painter: QPainter) -> None:
        colours = theme.current()
        total = sum(part for _, part in self._parts)
        painter.setPen(Qt.PenStyle.NoPen)
        if total <= 0:
            painter.setBrush(QColor(colours.line))
            painter.drawRoundedRect(QRectF(0, 2, self.width(), 6), 3, 3)
            return
        x = 0.0
        room = self.width() - 2 * 2
        painter.setFont(theme.font(11))
        label_x = 0.0
        for (name, part), alpha in zip(self._parts, self._ALPHAS, strict=False):
            width = max(2.0, room * part / total)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour(colours.text, alpha))
            painter.drawRoundedRect(QRectF(x, 2, width, 6), 2, 2)
            painter.drawRoundedRect(QRectF(label_x, 18, 7, 7), 2, 2)
            painter.setPen(QColor(colours.muted))
            label = f"{name} {part:.1f}"
            painter.drawText(QPointF(label_x + 11, 25.5), label)
            label_x += 11 + painter.fontMetrics().horizontalAdvance(label) + Space.M
            x += width + 2
