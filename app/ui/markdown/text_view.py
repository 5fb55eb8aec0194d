"""Text of one message: as high as its document, selectable as a whole, read-only."""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import QByteArray, QEvent, QMimeData, QPointF, QRectF, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QGuiApplication,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QWidget

from app.ui.look import theme
from app.ui.look.icons import IconButton
from app.ui.look.theme import MONO, RADIUS, Size, Space
from app.ui.markdown.document import Decoration, Kind, plain_text
from app.ui.markdown.formats import CODE_HEADER


class TextView(QTextBrowser):
    """`source` gives the text as it was written: what is copied when all is selected."""

    link_chosen = Signal(str)

    def __init__(
        self, name: str, source: Callable[[], str] = str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._source = source
        self._decorations: list[Decoration] = []
        self._copy_buttons: list[IconButton] = []
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.anchorClicked.connect(lambda url: self.link_chosen.emit(url.toString()))

    def decorate(self, decorations: list[Decoration]) -> None:
        """What is painted behind the text; each piece of code has a copy button."""
        self._decorations = decorations
        codes = [d for d in decorations if d.kind is Kind.CODE]
        while len(self._copy_buttons) < len(codes):
            button = IconButton("copy", "Copy this code", self.viewport(), size=16)
            index = len(self._copy_buttons)
            button.clicked.connect(lambda _=False, i=index: self._copy_code(i))
            self._copy_buttons.append(button)
        for surplus in self._copy_buttons[len(codes) :]:
            surplus.hide()
        self._fit()
        self.viewport().update()

    # --- Qt ---------------------------------------------------------------------

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Nothing is ever fetched or opened for a text."""
        return QByteArray()

    def createMimeDataFromSelection(self) -> QMimeData:
        cursor, data = self.textCursor(), QMimeData()
        start, end = cursor.selectionStart(), cursor.selectionEnd()
        everything = start == 0 and end >= self.document().characterCount() - 1
        text = self._source() if everything else ""
        data.setText(text or plain_text(self.document(), start, end))
        return data

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the chat scrolls, not the message

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_buttons()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        visible = QRectF(event.rect())
        for decoration in self._decorations:
            area = self._area(decoration)
            if area.intersects(visible):
                self._paint(painter, decoration, area)
        painter.end()
        super().paintEvent(event)

    def event(self, event: QEvent) -> bool:
        # Escape belongs to the window (Stop), not to a selection.
        if event.type() == QEvent.Type.ShortcutOverride:
            event.ignore()
            return False
        return super().event(event)

    # --- own --------------------------------------------------------------------

    def _fit(self) -> None:
        # The ground of code reaches below its last line, for which Qt leaves no room.
        lowest = self._area(self._decorations[-1]).bottom() if self._decorations else 0.0
        height = math.ceil(max(self.document().size().height(), lowest))
        if height != self.height():
            self.setFixedHeight(height)
        self._place_buttons()

    def _area(self, decoration: Decoration) -> QRectF:
        """The place of a decoration, without the margins around it."""
        document, layout = self.document(), self.document().documentLayout()
        first = document.findBlock(decoration.start)
        last = document.findBlock(decoration.end)
        top = layout.blockBoundingRect(first).top()
        bottom = layout.blockBoundingRect(last).bottom()
        left = 0.0
        if decoration.kind is Kind.CODE:
            shape = first.blockFormat()
            left = shape.indent() * document.indentWidth() + shape.leftMargin() - Space.L
            top, bottom = top - CODE_HEADER, bottom + Space.M
        return QRectF(QPointF(left, top), QPointF(self.viewport().width(), bottom))

    def _paint(self, painter: QPainter, decoration: Decoration, area: QRectF) -> None:
        colours = theme.current()
        painter.setPen(Qt.PenStyle.NoPen)
        if decoration.kind is Kind.CODE:
            painter.setBrush(QColor(colours.code))
            painter.setPen(QColor(colours.line))
            ground = area.adjusted(0.5, 0.5, -0.5, -0.5)
            painter.drawRoundedRect(ground, RADIUS, RADIUS)
            painter.setPen(QColor(colours.muted))
            painter.setFont(theme.font(Size.SMALL, family=MONO))
            strip = QRectF(area.left() + Space.L, area.top(), area.width(), CODE_HEADER)
            painter.drawText(strip, Qt.AlignmentFlag.AlignVCenter, decoration.language or "text")
        elif decoration.kind is Kind.QUOTE:
            left = decoration.depth * Space.L
            painter.setBrush(QColor(colours.line_strong))
            painter.drawRoundedRect(QRectF(left, area.top(), 3, area.height()), 1.5, 1.5)
        else:
            line = QRectF(0, round(area.top()), area.width(), 1)
            painter.fillRect(line, QColor(colours.line_strong))

    def _place_buttons(self) -> None:
        codes = [d for d in self._decorations if d.kind is Kind.CODE]
        for button, code in zip(self._copy_buttons, codes, strict=False):
            area = self._area(code)
            button.resize(28, 28)
            button.move(round(area.right()) - 34, round(area.top()) + 4)
            button.show()

    def _copy_code(self, index: int) -> None:
        code = [d for d in self._decorations if d.kind is Kind.CODE][index]
        QGuiApplication.clipboard().setText(plain_text(self.document(), code.start, code.end))
        self._copy_buttons[index].confirm()
