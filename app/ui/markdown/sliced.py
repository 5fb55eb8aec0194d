"""Text written in slices: at once where it is short, over several turns where it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, QTimer

SLICE: Final = 2_048
"""Characters written in one turn of the event loop."""


class Sliced(QObject):
    """Hands `write` what `add` was given, `SLICE` characters a turn, in order."""

    def __init__(self, parent: QObject, write: Callable[[str], None]) -> None:
        super().__init__(parent)
        self._write = write
        self._waiting = ""
        self._paused = False
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._turn)

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def add(self, text: str) -> None:
        self._waiting += text
        if not self._timer.isActive() and not self._paused:
            self._turn()

    def pause(self) -> None:
        """Write no more until `go_on`."""
        self._paused = True
        self._timer.stop()

    def go_on(self) -> None:
        self._paused = False
        if self._waiting:
            self._timer.start()

    def clear(self) -> None:
        self._waiting = ""
        self._paused = False
        self._timer.stop()

    def _turn(self) -> None:
        piece, self._waiting = self._waiting[:SLICE], self._waiting[SLICE:]
        if self._waiting:
            self._timer.start()
        else:
            self._timer.stop()
        self._write(piece)
