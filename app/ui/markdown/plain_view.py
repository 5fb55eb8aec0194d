"""Text as it was written, that arrives in pieces: a question, a model's thinking."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.ui.markdown.document import DocumentWriter
from app.ui.markdown.sliced import Sliced
from app.ui.markdown.text_view import TextView


class PlainView(TextView):
    """`source` gives all that was added; `role` is the colour of the palette it is written in."""

    grown = Signal()  # more of it is on the page

    def __init__(
        self,
        name: str,
        source: Callable[[], str],
        role: str = "text",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(name, source, parent)
        self._writer = DocumentWriter(self.document(), role)
        self._writer.open_plain()
        self._slices = Sliced(self, self._write)

    @property
    def rendered(self) -> bool:
        """Whether all that was added is on the page."""
        return not self._slices.waiting

    def restart(self) -> None:
        """Forget the text."""
        self._slices.clear()
        self._writer.clear()
        self._writer.open_plain()

    def add(self, text: str) -> None:
        self._slices.add(text)

    def rewrite(self) -> None:
        """Write all of it again, in the palette's new colours."""
        self.keep_selection()
        self.restart()
        self.add(self._source())

    def _write(self, piece: str) -> None:
        self._writer.more(piece)
        self.restore_selection(whole=self.rendered)
        self.grown.emit()
