"""Formulas, set by ziamath off the main thread and drawn as objects of the text.

DESIGN. A formula is one character of its document, an object, whose format holds its source:
so nothing that stands behind it is moved when it is set. Until then, and for ever where it
cannot be, the object shows the source. Setting one takes 5 to 100 ms of Python, so it is done
by tasks, a batch each, whose results come to the main thread; they are kept for the whole
window. What is set is vector graphics of no colour and no size: both come with the painting.

Qt lays objects out on the base line and has them reach below it as far as the font of their
format does. So a formula's format has a font that reaches as far as the formula: see `fitted`.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, QPointF, QRect, QRectF, QSizeF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QFontMetricsF,
    QImage,
    QPainter,
    QPyTextObject,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtSvg import QSvgRenderer

from app.jobs import CancelToken
from app.ui import task
from app.ui.look import theme
from app.ui.look.theme import COLUMN, MONO, Size
from app.ui.markdown.formats import Mark

_log = logging.getLogger(__name__)

OBJECT: Final = QTextFormat.ObjectTypes.UserObject + 1
"""The type of a formula's object."""

SIGN: Final = "\ufffc"
"""The character that stands for an object."""

LONGEST: Final = 800
"""Characters of a source beyond which it is shown as it is: it would take too long to set."""

_KEPT: Final = 600  # formulas, and as many pictures of them
_BATCH: Final = 0.05  # seconds of one task's work
_UNIT: Final = 20.0  # px of the type that formulas are set in
_LARGER: Final = 1.12  # their letters are smaller than those of the text, for the same px
_COLOUR: Final = "#010203"  # in which all is drawn that says no other
_BODY: Final = re.compile(r"(?s)\$\$(.*)\$\$|\$(.*)\$|\\\[(.*)\\\]|\\\((.*)\\\)")
_UNKNOWN: Final = re.compile(r">\\[A-Za-z]")
_VIEW: Final = re.compile(r'viewBox="\S+ (\S+) (\S+) (\S+)"')


@dataclass(frozen=True, slots=True)
class Formula:
    """Set. Sizes are in px at a type of 1 px; `below` is what hangs below the base line."""

    svg: str
    width: float
    height: float
    below: float


class Typesetter(QObject):
    """The formulas that are set, by their source; there is one for all documents."""

    ready = Signal(str)  # source
    settled = Signal()  # some more were set, or found to be none

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._known: OrderedDict[str, Formula | None] = OrderedDict()  # None: cannot be set
        self._pictures: OrderedDict[tuple[object, ...], QImage] = OrderedDict()
        self._waiting: dict[str, None] = {}
        self.busy = False

    def known(self, source: str) -> Formula | None:
        """The formula, if it is set."""
        return self._known.get(source)

    def want(self, source: str) -> bool:
        """Have it set; whether that is still to come."""
        if source in self._known:
            self._known.move_to_end(source)
            return False
        self._waiting[source] = None
        if not self.busy:
            self._go_on()
        return True

    def picture(self, source: str, px: float, colour: str, ratio: float) -> QImage:
        """It in type of `px` and in `colour`, with `ratio` device pixels a pixel."""
        key = (source, px, colour, ratio)
        if key not in self._pictures:
            formula = self._known[source]
            assert formula is not None
            self._pictures[key] = _painted(formula, px, colour, ratio)
            if len(self._pictures) > _KEPT:
                self._pictures.popitem(last=False)
        return self._pictures[key]

    def _go_on(self) -> None:
        self.busy = bool(self._waiting)
        if self.busy:
            batch = list(self._waiting)

            def work(_: Callable[[float], None], token: CancelToken) -> dict[str, Formula | None]:
                return _set_some(batch, token)

            task.run(self, work, self._take, lambda _: None)

    def _take(self, done: dict[str, Formula | None]) -> None:
        for source, formula in done.items():
            self._waiting.pop(source, None)
            self._known[source] = formula
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        for source, formula in done.items():
            if formula is not None:
                self.ready.emit(source)
        self._go_on()
        self.settled.emit()


class _Shared:
    typesetter: Typesetter | None = None
    told = False  # that one could not be set


def typesetter() -> Typesetter:
    """The one of this process, made when first asked for."""
    if _Shared.typesetter is None:
        _Shared.typesetter = Typesetter()
    return _Shared.typesetter


class FormulaObject(QPyTextObject):
    """Measures and paints the formulas of one document, and has those set that are laid out."""

    refitted = Signal()  # what stands behind a formula has moved

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self._document = document
        self._places: dict[str, set[int]] = {}  # of formulas that are still to be set
        self._set: set[str] = set()
        # Qt is laying out when it asks for a size, and one layout does for many.
        self._settle = QTimer(self, interval=0, singleShot=True)
        self._settle.timeout.connect(self._refit)
        document.documentLayout().registerHandler(OBJECT, self)
        typesetter().ready.connect(self._came)

    def intrinsicSize(self, document: QTextDocument, position: int, look: QTextFormat) -> QSizeF:
        source, px = _of(look)
        formula = typesetter().known(source)
        if formula is None:
            if typesetter().want(source):
                self._places.setdefault(source, set()).add(position)
            return _plain_size(source)
        padding = QFontMetrics(look.toCharFormat().font()).descent() - formula.below * px
        return QSizeF(formula.width * px, formula.height * px + max(0.0, padding))

    def drawObject(
        self,
        painter: QPainter,
        area: QRectF | QRect,
        document: QTextDocument,
        position: int,
        look: QTextFormat,
    ) -> None:
        source, px = _of(look)
        area = QRectF(area)
        if typesetter().known(source) is None:
            painter.setFont(theme.font(Size.CODE, family=MONO))
            painter.setPen(QColor(theme.current().text))
            painter.drawText(area, _WRAPPED, source)
            return
        ratio = painter.device().devicePixelRatio() if painter.device() else 1.0
        colour = look.foreground().color().name()
        picture = typesetter().picture(source, px, colour, ratio)
        # On whole device pixels, so that it is as sharp as it was drawn.
        origin = painter.deviceTransform().map(area.topLeft()) * ratio
        shift = (origin.x() - round(origin.x())) / ratio, (origin.y() - round(origin.y())) / ratio
        painter.drawImage(area.topLeft() - QPointF(*shift), picture)

    def _came(self, source: str) -> None:
        if source in self._places:
            self._set.add(source)
            self._settle.start()

    def _refit(self) -> None:
        """Give the formulas that are set now their room."""
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        for source in self._set:
            for place in self._places.pop(source, ()):
                if place + 1 >= self._document.characterCount():
                    continue
                cursor.setPosition(place)
                cursor.setPosition(place + 1, QTextCursor.MoveMode.KeepAnchor)
                look = cursor.charFormat()
                if look.property(Mark.SOURCE) == source:  # it may be another text by now
                    cursor.setCharFormat(fitted(look))
        self._set.clear()
        cursor.endEditBlock()
        self.refitted.emit()


def shows(source: str) -> bool:
    """Whether `source`, with the signs around it, is to be an object."""
    return len(source) <= LONGEST and source.count("{") == source.count("}")


def object_format(base: QTextCharFormat, source: str) -> QTextCharFormat:
    """The format of the object for `source` in a text that looks like `base`."""
    result = QTextCharFormat(base)
    result.setObjectType(OBJECT)
    result.setProperty(Mark.RUN, "formula")
    result.setProperty(Mark.SOURCE, source)
    result.setProperty(Mark.PX, base.fontPointSize() / theme.points(1.0) * _LARGER)
    result.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignBaseline)
    return fitted(result)


def fitted(look: QTextCharFormat) -> QTextCharFormat:
    """`look` with a font that reaches as far below the base line as its formula, if it is set."""
    source, px = _of(look)
    formula = typesetter().known(source)
    if formula is None:
        return look
    result = QTextCharFormat(look)
    below, font = math.ceil(formula.below * px), look.font()
    while QFontMetrics(font).descent() < below:
        font.setPointSizeF(font.pointSizeF() * 1.1)
    result.setFontPointSize(font.pointSizeF())
    result.setProperty(Mark.FITTED, True)  # a change, so that it is laid out anew
    return result


_WRAPPED: Final = Qt.TextFlag.TextWrapAnywhere | Qt.AlignmentFlag.AlignLeft


def _plain_size(source: str) -> QSizeF:
    metrics = QFontMetricsF(theme.font(Size.CODE, family=MONO))
    room = QRectF(0, 0, COLUMN - 80, 10_000)
    area = metrics.boundingRect(room, _WRAPPED, source)
    return QSizeF(math.ceil(area.width()), area.height())


def _of(look: QTextFormat) -> tuple[str, float]:
    """Source, and px of its type."""
    return str(look.property(Mark.SOURCE) or ""), float(look.property(Mark.PX) or Size.BODY)


def _painted(formula: Formula, px: float, colour: str, ratio: float) -> QImage:
    width, height = (math.ceil(v * px * ratio) for v in (formula.width, formula.height))
    result = QImage(max(1, width), max(1, height), QImage.Format.Format_ARGB32_Premultiplied)
    result.fill(Qt.GlobalColor.transparent)
    painter = QPainter(result)
    renderer = QSvgRenderer(formula.svg.replace(_COLOUR, colour).encode())
    renderer.render(painter, QRectF(0, 0, formula.width * px * ratio, formula.height * px * ratio))
    painter.end()
    result.setDevicePixelRatio(ratio)
    return result


# --- off the main thread ------------------------------------------------------------------


def _set_some(sources: Sequence[str], token: CancelToken) -> dict[str, Formula | None]:
    """At least one of them; others as long as time is left."""
    done: dict[str, Formula | None] = {}
    until = time.perf_counter() + _BATCH
    for source in sources:
        token.check()
        try:
            done[source] = set_formula(source)
        except Exception:  # whatever is wrong with it, its source can be shown
            _told()
            done[source] = None
        if time.perf_counter() > until:
            break
    return done


def _told() -> None:
    """Logs the exception, the first of this process: what is wrong with one may be so with all."""
    if not _Shared.told:
        _Shared.told = True
        _log.warning("a formula could not be set", exc_info=True)


def set_formula(source: str) -> Formula | None:
    """Set `source`; None where a part of it would be missing. Raises what ziamath does."""
    # 0.3 s, which only who meets a formula pays.
    from ziamath.config import config
    from ziamath.zmath import Math

    config.svg2 = False  # Qt knows no symbols
    config.precision = 2
    match = _BODY.fullmatch(source)
    latex = next((group for group in match.groups() if group is not None), "") if match else ""
    shown_alone = source.startswith(("$$", "\\["))
    # A tag in a text would be one of MathML.
    latex = latex.replace("<", "< ")
    made = Math.fromlatex(latex, size=_UNIT, color=_COLOUR, inline=not shown_alone, margin=0.5)
    if _UNKNOWN.search(made.mathmlstr()) or not all(
        made.font.glyphindex(c) for c in _letters(latex)
    ):
        return None
    svg = made.svg()
    view = _VIEW.search(svg)
    if view is None or "nan" in svg:
        return None
    top, width, height = (float(value) / _UNIT for value in view.groups())
    return Formula(svg, width, height, height + top)


def _letters(latex: str) -> set[str]:
    return {sign for sign in latex if ord(sign) > 127 and not sign.isspace()}
