"""Markdown that arrives in pieces, set as it comes: an answer, wherever one is shown."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.ui.markdown.document import DocumentWriter, Kind
from app.ui.markdown.held import HeldSheet
from app.ui.markdown.highlight import Highlighter
from app.ui.markdown.notes import names
from app.ui.markdown.sliced import Sliced
from app.ui.markdown.stream import MarkdownStream
from app.ui.markdown.text_view import TextView


class MarkdownView(TextView):
    """`source` gives all that was added."""

    grown = Signal()  # more of it is on the page

    def __init__(self, name: str, source: Callable[[], str], parent: QWidget | None = None) -> None:
        super().__init__(name, source, parent)
        self._writer = DocumentWriter(self.document())
        self._sheet = HeldSheet(self._writer, self._begin_piece, self._show_piece, self)
        self._stream = MarkdownStream(self._sheet)
        self._slices = Sliced(self, self._feed)
        self._highlighter = Highlighter(self.document())
        self._coloured = 0  # pieces of code
        self._finished = False  # no more text comes
        self._closed = False  # the stream was told so

    @property
    def rendered(self) -> bool:
        """Whether all that was added is on the page."""
        return not self._slices.waiting and not self._sheet.waiting

    def restart(self) -> None:
        """Forget the text."""
        self._slices.clear()
        self._highlighter.clear()
        self._writer.clear()
        self._sheet.clear()
        self._stream = MarkdownStream(self._sheet)
        self._writer.names = None
        self._coloured, self._finished, self._closed = 0, False, False
        self.decorate([])

    def add(self, text: str) -> None:
        if self._writer.names is None:  # nothing is written
            self._writer.names = names(self._source())
        self._slices.add(text)

    def finish(self) -> None:
        """No more text comes."""
        self._finished = True
        self._slices.add("")

    def rewrite(self) -> None:
        """Write all of it again, in the palette's new colours."""
        finished = self._finished
        self.keep_selection()
        self.restart()
        self._finished = finished
        self.add(self._source())

    def _feed(self, piece: str) -> None:
        self._stream.feed(piece)
        if self._sheet.waiting:
            self._slices.pause()

    def _begin_piece(self) -> None:
        self.keep_selection(self._writer.firm)

    def _show_piece(self) -> None:
        """A piece is on the page."""
        if self._finished and not self._slices.waiting and not self._closed:
            self._close()
            return
        self.decorate(list(self._writer.decorations))
        self.restore_selection(whole=self.rendered)
        self._colour_closed()
        self.grown.emit()
        self._slices.go_on()

    def _close(self) -> None:
        """Notes that have names end a text, and what refers to them is set by their names: so now
        the text is written again if there are such."""
        if (known := names(self._source())) != self._writer.names:
            self.keep_selection()
            self.restart()
            self._writer.names = known
            self._finished = True
            self._slices.add(self._source())
            return
        self._closed = True
        self._stream.finish()

    def _colour_closed(self) -> None:
        closed = [d for d in self._writer.closed if d.kind is Kind.CODE and not d.open]
        for code in closed[self._coloured :]:
            self._highlighter.add(code)
        self._coloured = len(closed)
