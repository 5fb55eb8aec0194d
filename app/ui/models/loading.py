"""Getting a model into the engine: its files by the library, then a `Load`."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.engine import Backend, LoadedModel, LoadParams
from app.errors import SlipstreamError
from app.library import Pair
from app.settings import Settings
from app.ui import task
from app.ui.bridge import EngineBridge
from app.ui.models.source import Models


class Loader(QObject):
    preparing = Signal(str)  # what is being done
    progressed = Signal(float)
    loaded = Signal(object)  # LoadedModel
    failed = Signal(object)  # SlipstreamError

    def __init__(self, bridge: EngineBridge, models: Models, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge, self._models = bridge, models
        self._task: task.Task[Pair] | None = None
        self._request: int | None = None
        self.title = ""
        bridge.loading.connect(self.progressed)
        bridge.loaded.connect(self._loaded)
        bridge.failed.connect(self._failed)

    def load(self, settings: Settings) -> None:
        """Load the chosen model, in place of whatever is loaded or loading."""
        self.close(0)
        if self._request is not None:
            self._bridge.cancel(self._request)
        self.preparing.emit("Preparing the model …")
        self._task = task.run(
            self,
            lambda progress, cancel: self._models.open(settings.model, progress, cancel),
            lambda pair: self._load(pair, settings),
            self._give_up,
            self.progressed.emit,
        )

    def close(self, seconds: float) -> None:
        """Stop what runs in the background, waiting for it as long as this."""
        if self._task is not None:
            self._task.cancel()
            self._task.join(seconds)
            self._task = None

    def _load(self, pair: Pair, settings: Settings) -> None:
        self._task = None
        self.title = pair.title
        self.preparing.emit("Loading the model …")
        try:
            backend = Backend(settings.backend)
            params = LoadParams(pair.target, pair.draft, backend, settings.n_ctx)
        except SlipstreamError as error:
            self._give_up(error)
            return
        self._request = self._bridge.load(params)

    def _loaded(self, request: int, model: LoadedModel) -> None:
        if request == self._request:  # else another one is on its way
            self._request = None
            self.loaded.emit(model)

    def _failed(self, request: int, error: SlipstreamError) -> None:
        if request == self._request:
            self._give_up(error)

    def _give_up(self, error: SlipstreamError) -> None:
        self._task = self._request = None
        self.failed.emit(error)
