"""Which models there are: asked off the main thread, because that looks at the disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QObject, Signal

from app import catalog
from app.library import ModelState, ModelStatus
from app.ui import task
from app.ui.models.source import Models


class Offer(NamedTuple):
    """A model that is better than the one in use, with the words of its button."""

    model: str
    label: str
    why: str
    here: bool  # it only has to be chosen


def offer(models: Sequence[ModelStatus], chosen: str, going: str = "") -> Offer | None:
    """The first model of the catalogue, where nothing but the guide is in use; `going` is the one
    that is being got."""
    in_use = catalog.find(chosen)
    if in_use is None or not in_use.bundled:
        return None
    for model in models:
        known = catalog.find(model.id)
        if known is None or known.bundled or model.state is ModelState.BROKEN:
            continue
        if model.id == going:
            return Offer(model.id, "See how far it is", f"{model.title} is on its way.", False)
        if model.usable:
            return Offer(model.id, f"Use {model.title}", "It is on this computer already.", True)
        verb = "Get" if model.state is ModelState.AVAILABLE else "Go on getting"
        return Offer(
            model.id, f"{verb} {model.title}", "The guide that answers now is tiny.", False
        )
    return None


class ModelList(QObject):
    changed = Signal(tuple)  # of ModelStatus
    failed = Signal(object)  # SlipstreamError

    def __init__(self, models: Models, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._models = models
        self._known: tuple[ModelStatus, ...] = ()
        self._looking: task.Task[tuple[ModelStatus, ...]] | None = None
        self._again = False  # something changed while it was looked at

    @property
    def known(self) -> tuple[ModelStatus, ...]:
        """As they were when last looked at."""
        return self._known

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
