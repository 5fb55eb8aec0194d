"""Labels that several rooms of the window set alike."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from app.ui.look import theme, words
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space


def section(text: str, above: int = Space.M, below: int = 0) -> QLabel:
    """A heading inside a sheet, with air in px around it."""
    result = QLabel(tr(text))
    result.setFont(theme.font(Size.CONTROL, QFont.Weight.DemiBold))
    result.setWordWrap(True)
    result.setContentsMargins(0, above, 0, below)
    return result


def title(text: str) -> QLabel:
    """Of a card, or of a row in a list: however long, all of it is read."""
    result = QLabel(broken(text, 12))
    result.setFont(theme.font(Size.CONTROL, QFont.Weight.DemiBold))
    result.setTextFormat(Qt.TextFormat.PlainText)
    result.setWordWrap(True)
    return result


def small(text: str) -> QLabel:
    """Small text in the colour of text. Names of files and models in it are not read as HTML."""
    result = QLabel(words.quoted(tr(text)))
    result.setFont(theme.font(Size.SMALL))
    result.setTextFormat(Qt.TextFormat.PlainText)
    result.setWordWrap(True)
    return result


class Line(QLabel):
    """A line of its own width; where there is less room, as many lines as it takes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWordWrap(True)

    def sizeHint(self) -> QSize:
        width = self.fontMetrics().horizontalAdvance(self.text()) + 2  # rounded down at its ends
        return QSize(width, self.heightForWidth(width))


def lines(first: Sequence[str], others: Sequence[str]) -> str:
    """Each in a line of its own, with air between them, as a label's rich text.

    `first` stand out.
    """
    strong = [f'<span style="font-weight:600">{html.escape(text)}</span>' for text in first]
    text = "<br>".join([*strong, *map(html.escape, others)])
    return f'<div style="line-height:140%">{text}</div>'


def breakable(text: str) -> str:
    """The same to the eye; what is wider than its place, as a path, goes on in a next line."""
    return broken(re.sub(r"[/\\](?=\S)", "\\g<0>\u200b", text))


def broken(text: str, run: int = 24) -> str:
    """As `breakable`, only where Qt finds no place for `run` signs: most paths can be copied."""
    return re.sub(rf"[^\s\u200b/-]{{{run}}}(?=[^\s\u200b/-])", "\\g<0>\u200b", text)


def tip(text: str) -> str:
    """What shows `text` as it is in a tooltip, which Qt may take for HTML, pictures and all."""
    return f"<qt>{html.escape(text)}</qt>" if "<" in text or "&" in text else text


def note(text: str) -> QLabel:
    """Small and quiet: what explains its neighbour."""
    result = small(text)
    result.setProperty("kind", "caption")
    return result


def beside_rule(widget: QWidget) -> QWidget:
    """`widget` with a quiet line at its left, which tells it from what follows."""
    result = QWidget()
    rule = QFrame()
    rule.setProperty("kind", "rule")
    rule.setFixedWidth(2)
    row = QHBoxLayout(result)
    row.setContentsMargins(0, Space.XS, 0, Space.M)
    row.setSpacing(Space.M)
    row.addWidget(rule)
    row.addWidget(widget)
    return result
