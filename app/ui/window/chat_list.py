"""The list of chats as rows: groups by day, what tells equal titles apart, how a row looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Any, Final

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.history import Hit
from app.ui.look import theme
from app.ui.look.icons import pixmap
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space

Index = QModelIndex | QPersistentModelIndex

PINNED: Final = "Pinned"

ROW: Final = 34
TALL: Final = 54  # with an excerpt
HEAD: Final = 32
MORE: Final = 30
"""Heights in px of the rows at the usual size of text, and the width of a row's button."""

_EDGE: Final = 8
_BEFORE: Final = 16
"""Signs before what was found."""


EXPORTS: Final = {
    "markdown": "As Markdown …",
    "html": "As a page to print (HTML) …",
    "pdf": "As PDF …",
    "json": "As JSON, to import again …",
}
"""What a chat can be written as, by the kinds of `porting`."""


class State(StrEnum):
    NONE = ""
    ANSWERING = "answering"
    WAITING = "waiting"
    UNSEEN = "new answer"


class Part(IntEnum):
    """What a row tells, beside Qt's own roles."""

    ENTRY = Qt.ItemDataRole.UserRole
    HEADING = Qt.ItemDataRole.UserRole + 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A chat in the list. `excerpt` is of a search: what was found is between `Hit`'s marks."""

    id: str
    title: str
    used: float
    pinned: bool = False
    state: State = State.NONE
    excerpt: str = ""
    turn: str | None = None  # where that is
    apart: str = ""  # what tells it from others of the same title


def px(height: int) -> int:
    """`height` for the size of text in use: half as much larger or smaller as that is."""
    return round(height * (1 + theme.scale()) / 2)


def grouped(entries: Sequence[Entry], today: date) -> list[str | Entry]:
    """Entries, of which those used last come first, under headings: pinned, then by day."""
    rows: list[str | Entry] = []
    last = ""
    ordered = sorted(entries, key=lambda e: not e.pinned)
    for entry in ordered:
        heading = tr(PINNED) if entry.pinned else day(entry.used, today)
        if heading != last:
            rows.append(heading)
            last = heading
        rows.append(entry)
    return rows


def day(used: float, today: date) -> str:
    """The day of a time as people say it: less exactly the longer ago."""
    then = moment(used).date()
    ago = (today - then).days
    if ago <= 0:
        return tr("Today")
    if ago == 1:
        return tr("Yesterday")
    if ago < 7:
        return tr(then.strftime("%A"))
    if ago < 31:
        monday = today - timedelta(days=today.weekday())
        weeks = -(-(monday - then).days // 7)
        return tr("Last week") if weeks <= 1 else tr("{n} weeks ago").format(n=weeks)
    month = tr(then.strftime("%B"))
    return month if then.year == today.year else f"{month} {then.year}"


def told_apart(entries: Sequence[Entry], today: date) -> list[Entry]:
    """Where titles are equal, when each was used last tells them apart."""
    titles = Counter(e.title.casefold() for e in entries)
    seen: Counter[tuple[str, str]] = Counter()
    result = []
    for entry in entries:
        apart = ""
        if titles[entry.title.casefold()] > 1:
            then = moment(entry.used)
            recent = then.date() == today
            apart = then.strftime("%H:%M") if recent else f"{then.day} {then:%b}"
            key = (entry.title.casefold(), apart)
            seen[key] += 1
            if seen[key] > 1:
                apart = f"{apart} ({seen[key]})"
        result.append(replace(entry, apart=apart))
    return result


def moment(seconds: float) -> datetime:
    """In this place's time; a clock that was wrong costs no list."""
    try:
        return datetime.fromtimestamp(seconds)
    except (OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(0)


class ChatListModel(QAbstractListModel):
    """Headings and entries."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows: list[str | Entry] = []

    def set_rows(self, rows: list[str | Entry]) -> None:
        """Only what changed is told: a row keeps its hover, its editor and its place."""
        if [_key(r) for r in rows] == [_key(r) for r in self.rows]:
            self.rows = rows
            if rows:
                self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def row_of(self, chat: str) -> int:
        """-1 where it is not in the list."""
        return next(
            (i for i, r in enumerate(self.rows) if isinstance(r, Entry) and r.id == chat), -1
        )

    def entry(self, index: Index) -> Entry | None:
        row = self.rows[index.row()] if 0 <= index.row() < len(self.rows) else None
        return row if isinstance(row, Entry) else None

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def flags(self, index: Index) -> Qt.ItemFlag:
        if self.entry(index) is None:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not 0 <= index.row() < len(self.rows):
            return None
        row = self.rows[index.row()]
        if isinstance(row, str):
            text = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Part.HEADING)
            return row if role in text else None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.title
            case Qt.ItemDataRole.ToolTipRole:
                when = moment(row.used)
                return f"{row.title}\n{when:%A}, {when.day} {when:%B %Y, %H:%M}"
            case Qt.ItemDataRole.AccessibleTextRole:
                said = [row.title, row.apart, row.state.value, "pinned" if row.pinned else ""]
                excerpt = row.excerpt.replace(Hit.START, "").replace(Hit.STOP, "")
                return ", ".join(part for part in (*said, excerpt) if part)
            case Part.ENTRY:
                return row
        return None


def _key(row: str | Entry) -> tuple[object, ...]:
    return (row,) if isinstance(row, str) else (row.id, bool(row.excerpt))


class RowPainter(QStyledItemDelegate):
    """A heading; or a title with what tells it apart, its state, and a button for more."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        entry = index.data(Part.ENTRY)
        if entry is None:
            return QSize(100, px(HEAD))
        return QSize(100, px(TALL if entry.excerpt else ROW))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        heading = index.data(Part.HEADING)
        if isinstance(heading, str):
            self._heading(painter, rect, heading)
        else:
            self._entry(painter, rect, state, index.data(Part.ENTRY))
        painter.restore()

    def more_of(self, rect: QRect) -> QRect:
        """Where the button of a row at `rect` is."""
        left = rect.right() - _EDGE - MORE + 1
        return QRect(left, rect.top(), MORE, min(rect.height(), px(ROW)))

    # --- own ----------------------------------------------------------------------------

    def _heading(self, painter: QPainter, rect: QRect, text: str) -> None:
        painter.setFont(theme.font(Size.SMALL, QFont.Weight.Medium))
        painter.setPen(QColor(theme.current().muted))
        place = rect.adjusted(Space.L + 2, Space.S, -Space.S, 0)
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, text)

    def _entry(self, painter: QPainter, rect: QRect, state: QStyle.StateFlag, entry: Entry) -> None:
        colours = theme.current()
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        focused = bool(state & QStyle.StateFlag.State_HasFocus)
        ground = QRectF(rect.adjusted(_EDGE, 1, -_EDGE, -1))
        if chosen or hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.hover))
            painter.drawRoundedRect(ground, 6, 6)
        if chosen:
            painter.setBrush(QColor(colours.accent))
            bar = QRectF(ground.left(), ground.top() + 6, 3, px(ROW) - 14)
            painter.drawRoundedRect(bar, 1.5, 1.5)
        if focused:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(colours.muted), 1))
            painter.drawRoundedRect(ground.adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        line = QRect(rect.left() + Space.L + 2, rect.top(), rect.width() - Space.L - 2, px(ROW))
        line.setRight(self._signs(painter, rect, entry, hovered) - Space.XS)
        font = theme.font(Size.CONTROL)
        if entry.state is State.UNSEEN:
            font.setWeight(QFont.Weight.DemiBold)
        if entry.apart:
            line.setRight(self._apart(painter, line, entry.apart))
        painter.setFont(font)
        painter.setPen(QColor(colours.text))
        title = QFontMetrics(font).elidedText(
            entry.title, Qt.TextElideMode.ElideRight, line.width()
        )
        align = Qt.AlignmentFlag.AlignVCenter | _side(entry.title)
        painter.drawText(line, align, title)
        if entry.excerpt:
            place = QRect(rect.left() + Space.L + 2, rect.top() + px(29), 0, px(19))
            place.setRight(rect.right() - Space.L)
            self._excerpt(painter, place, entry.excerpt)

    def _signs(self, painter: QPainter, rect: QRect, entry: Entry, hovered: bool) -> int:
        """State, pin and button at the right; returns where they begin."""
        colours = theme.current()
        ratio = painter.device().devicePixelRatioF()
        more = self.more_of(rect)
        left = rect.right() - _EDGE - Space.XS
        if hovered:
            middle = more.center()
            sign = pixmap("more", colours.muted, 16, ratio)
            painter.drawPixmap(middle.x() - 8, middle.y() - 8, sign)
            return more.left()
        middle_y = rect.top() + px(ROW) // 2
        if entry.pinned:
            left -= 16
            painter.drawPixmap(left, middle_y - 7, pixmap("pin", colours.muted, 14, ratio))
            left -= Space.XS
        if entry.state is not State.NONE:
            left -= 14
            self._state(painter, QRectF(left + 2, middle_y - 4, 8, 8), entry.state)
        return left

    def _state(self, painter: QPainter, place: QRectF, state: State) -> None:
        """Three bars: it comes. A ring: it waits. A dot: there is something new."""
        colour = QColor(theme.current().text)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        if state is State.ANSWERING:
            for i, height in enumerate((5.0, 8.0, 6.0)):
                x = place.left() + 3.5 * i
                painter.drawRoundedRect(QRectF(x, place.bottom() - height, 2, height), 1, 1)
        elif state is State.WAITING:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.current().muted), 1.5))
            painter.drawEllipse(place)
        else:
            painter.drawEllipse(place)

    def _apart(self, painter: QPainter, line: QRect, text: str) -> int:
        font = theme.font(Size.SMALL)
        painter.setFont(font)
        painter.setPen(QColor(theme.current().muted))
        align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(line, align, text)
        return line.right() - QFontMetrics(font).horizontalAdvance(text) - Space.S

    def _excerpt(self, painter: QPainter, place: QRect, excerpt: str) -> None:
        """What was found stands out by weight and colour."""
        colours, x = theme.current(), place.left()
        excerpt = near(excerpt)
        for i, piece in enumerate(excerpt.replace(Hit.STOP, Hit.START).split(Hit.START)):
            found = bool(i % 2)
            weight = QFont.Weight.DemiBold if found else QFont.Weight.Normal
            font = theme.font(Size.SMALL, weight)
            metrics = QFontMetrics(font)
            room = place.right() - x
            if room < 8:
                break
            shown = metrics.elidedText(piece, Qt.TextElideMode.ElideRight, room)
            painter.setFont(font)
            painter.setPen(QColor(colours.text if found else colours.muted))
            spot = QRect(x, place.top(), room, place.height())
            painter.drawText(spot, Qt.AlignmentFlag.AlignVCenter, shown)
            x += metrics.horizontalAdvance(shown)


def near(excerpt: str) -> str:
    """An excerpt with few words before what was found, so that this is seen in a narrow list."""
    before, mark, after = excerpt.partition(Hit.START)
    if not mark or len(before) <= _BEFORE:
        return excerpt
    words = before[-_BEFORE:].partition(" ")[2]
    return f"… {words}{mark}{after}"


def _side(text: str) -> Qt.AlignmentFlag:
    """Where a title begins: at the right in scripts that do."""
    first = next((c for c in text if c.isalpha()), "")
    right = "\u0590" <= first <= "\u08ff" or "\ufb1d" <= first <= "\ufeff"
    return Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
