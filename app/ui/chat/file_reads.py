"""Files that are read for a message, off the main thread; it waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app import attachments
from app.drafting import Attachment
from app.errors import SlipstreamError
from app.ui import task


class FileReads(QObject):
    changed = Signal()  # which files are being read
    came = Signal(object)  # Attachment: a whole one
    refused = Signal(object)  # SlipstreamError: why one is none

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._running: dict[task.Task[Attachment], str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Of the files that are being read."""
        return tuple(self._running.values())

    def read(self, files: Sequence[Path]) -> None:
        for file in files:
            self._read(file)
        self.changed.emit()

    def stop(self) -> None:
        """Nothing comes of those that are being read."""
        for running in self._running:
            running.cancel()
        self._running.clear()
        self.changed.emit()

    def _read(self, file: Path) -> None:
        def came(attachment: Attachment) -> None:
            self._end(running)
            self.came.emit(attachment)

        def refused(error: SlipstreamError) -> None:
            self._end(running)
            self.refused.emit(error)

        running = task.run(self, lambda progress, cancel: attachments.read(file), came, refused)
        self._running[running] = file.name

    def _end(self, running: task.Task[Attachment]) -> None:
        del self._running[running]
        self.changed.emit()
