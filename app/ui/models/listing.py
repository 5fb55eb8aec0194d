"""Which models there are: asked off the main thread, because that looks at the disk."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.library import ModelStatus
from app.ui import task
from app.ui.models.source import Models


class ModelList(QObject):
    changed = Signal(tuple)  # of ModelStatus
    failed = Signal(object)  # SlipstreamError

    def __init__(self, models: Models, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._models = models
        self._known: tuple[ModelStatus, ...] = ()
        self._looking: task.Task[tuple[ModelStatus, ...]] | None = None
        self._again = False  # something changed while it was looked at

    def refresh(self) -> None:
        """Look again; `changed` follows if there is anything new."""
        self._again = self._looking is not None
        if self._looking is None:
            self._looking = task.run(
                self, lambda progress, cancel: self._models.models(), self._take, self._give_up
            )

    def _take(self, models: tuple[ModelStatus, ...]) -> None:
        self._looking = None
        if models != self._known:
            self._known = models
            self.changed.emit(models)
        if self._again:
            self.refresh()

    def _give_up(self, error: object) -> None:
        self._looking, self._again = None, False
        self.failed.emit(error)
