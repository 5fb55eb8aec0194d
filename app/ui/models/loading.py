"""Getting a model into the engine: its files by the library, then a `Load`."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.engine import LoadedModel
from app.errors import SlipstreamError
from app.library import Pair
from app.loading import LoadChoice
from app.ui import task
from app.ui.bridge import EngineBridge, LoadRequest
from app.ui.models.source import Models


class Loader(QObject):
    """One model at a time is wanted: a new one takes the place of one that is on its way."""

    changed = Signal()  # what is loaded, or what is being done for it
    failed = Signal(object)  # SlipstreamError

    def __init__(self, bridge: EngineBridge, models: Models, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.model: LoadedModel | None = None
        self.pair: Pair | None = None
        """The files of the loaded model, with what it is called here."""
        self._sent: Pair | None = None  # those that the engine was asked for last
        self._wanted = ""  # the id of the model that is on its way
        self.activity = ""
        """What is being done, in words; empty where nothing is."""
        self._bridge, self._models = bridge, models
        self._opening: task.Task[Pair] | None = None
        self._loading: LoadRequest | None = None
        bridge.model_changed.connect(self._set_model)

    @property
    def obstacle(self) -> str:
        """Why no question can be asked; empty where one can."""
        return self.activity or ("" if self.model else "No model is loaded")

    @property
    def in_use(self) -> str:
        """The id of the model that is on its way, or else of the one that answers; empty where
        neither is, whatever the settings name."""
        return self._wanted or (self.pair.id if self.pair else "")

    def load(self, choice: LoadChoice) -> None:
        """Load a model in place of whatever is loaded or loading."""
        self.close(0)
        if self._loading is not None:
            self._loading.abandon()
            self._loading = None
        self._wanted = choice.model
        self._opening = task.run(
            self,
            lambda progress, cancel: self._models.open(choice.model, progress, cancel),
            lambda pair: self._load(pair, choice),
            self._give_up,
            lambda fraction: self._show("Preparing the model …", fraction),
        )
        self._show("Preparing the model …")

    def close(self, seconds: float) -> None:
        """Stop what runs in the background, waiting for it as long as this."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening.join(seconds)
            self._opening = None

    def _load(self, pair: Pair, choice: LoadChoice) -> None:
        self._opening = None
        try:
            params = choice.params(pair)
        except SlipstreamError as error:
            self._give_up(error)
            return
        self._sent = pair
        self._loading = self._bridge.load(params)
        self._loading.progressed.connect(lambda part: self._show("Loading the model …", part))
        self._loading.finished.connect(lambda model: self._end())
        self._loading.failed.connect(self._give_up)
        self._show("Loading the model …")

    def _show(self, activity: str, fraction: float | None = None) -> None:
        self.activity = activity if fraction is None else f"{activity} {fraction:.0%}"
        self.changed.emit()

    def _set_model(self, model: LoadedModel | None) -> None:
        self.model, self.pair = model, self._sent if model else None
        self.changed.emit()

    def _end(self) -> None:
        self._opening = self._loading = None
        self._wanted = ""
        self._show("")

    def _give_up(self, error: SlipstreamError) -> None:
        self._end()
        self.failed.emit(error)
