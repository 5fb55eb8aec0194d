"""What the window does: the conversations, the one that is shown, the answer that runs.

It knows no widget. Whoever shows something listens to its signals, and every decision
(may this be asked now? is there anything to load?) is made here.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, Signal

from app.conversation import Conversation, Role, Turn
from app.engine import AskParams, Backend, Sampling, Verify
from app.errors import ContextFullError, SlipstreamError
from app.loading import LoadChoice
from app.presets import ChatOptions
from app.ui.bridge import EngineBridge
from app.ui.chat.live_turn import LiveTurn
from app.ui.meters.model import Meters
from app.ui.models.loading import Loader
from app.ui.settings.flow import SettingsFlow

_RELOADS: Final = frozenset({"model", "backend", "draft_backend", "n_ctx"})
"""Settings that another load has to bring into force."""


class Controller(QObject):
    shown = Signal(object)  # Conversation: another one than before
    turns_changed = Signal(object)  # Conversation
    began = Signal(object)  # LiveTurn
    busy_changed = Signal(bool)
    refused = Signal(object)  # SlipstreamError: why nothing was asked
    edited = Signal(object)  # Conversation: its options, or what of it a model is given

    def __init__(
        self,
        bridge: EngineBridge,
        loader: Loader,
        meters: Meters,
        flow: SettingsFlow,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._bridge, self._loader, self._meters, self._flow = bridge, loader, meters, flow
        self.current = Conversation()
        self.conversations = {self.current.id: self.current}
        self._live: LiveTurn | None = None
        flow.changed.connect(self._settings_changed)

    # --- conversations ----------------------------------------------------------

    def new_chat(self) -> None:
        """An empty chat; the one that is empty already, if there is one."""
        empty = next((c for c in self.conversations.values() if not c.turns), None)
        if empty is None:
            empty = Conversation()
            self.conversations[empty.id] = empty
        self.show_chat(empty.id)

    def show_chat(self, conversation: str) -> None:
        if conversation != self.current.id:
            self.stop()
            self.current = self.conversations[conversation]
        self.shown.emit(self.current)

    # --- answers ----------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return self._live is not None

    def ask(self, text: str) -> bool:
        """Ask in the shown chat, in place of what is being answered; False if it cannot be."""
        if (params := self._ask_params()) is None:
            return False
        self._answer(self.current.ask(text), params)
        return True

    def again(self) -> bool:
        """Answer the last question of the shown chat anew; False if that cannot be."""
        question = self.current.last_question
        if question is None or (params := self._ask_params()) is None:
            return False
        self._answer(question, params)
        return True

    def stop(self) -> None:
        if self._live is not None:
            self._live.stop()

    def _answer(self, question: Turn, params: AskParams) -> None:
        self.stop()
        chat = self.current.messages(question)
        turn = self.current.answer(question)
        reply = self._bridge.ask(chat, params)
        live = self._live = LiveTurn(reply, turn, self)
        live.ended.connect(lambda: self._ended(live))
        self._meters.follow(reply)
        self.turns_changed.emit(self.current)
        self.began.emit(live)
        self.busy_changed.emit(True)

    def _ended(self, live: LiveTurn) -> None:
        if live is self._live:  # else another one has taken its place
            self._live = None
            self.busy_changed.emit(False)

    def _ask_params(self) -> AskParams | None:
        """How the next answer is made; None where none can be now."""
        if self._loader.obstacle:
            return None
        s = ChatOptions.of_json(self.current.options).over(self._flow.current)
        try:
            sampling = Sampling(s.temperature, s.top_k, s.top_p, s.min_p, s.seed)
            return AskParams(s.max_tokens, Verify(s.verify), sampling, s.block, think=s.think)
        except SlipstreamError as error:
            self.refused.emit(error)
            return None

    # --- what a model is given -----------------------------------------------------

    def forget_oldest(self) -> None:
        """Have a model be given the newer half of what it is given of the shown chat."""
        questions = [t for t in self.current.given() if t.role is Role.USER]
        if len(questions) > 1:
            self._start_at(questions[len(questions) // 2].id)
        elif questions:
            self.refused.emit(
                ContextFullError(
                    "There is only one question left in what the model reads.",
                    remedy="Shorten what is written, or start a new chat.",
                )
            )

    def remember_all(self) -> None:
        self._start_at(None)

    def set_options(self, options: ChatOptions) -> None:
        """What holds for the shown chat alone."""
        self.current.options = options.json()
        self.edited.emit(self.current)

    def _start_at(self, turn: str | None) -> None:
        self.current.start = turn
        self.edited.emit(self.current)

    # --- the model --------------------------------------------------------------

    def load(self) -> None:
        """Load what the settings say, in place of what is loaded."""
        self.stop()
        s = self._flow.current
        draft = None if s.draft_backend == "same" else Backend(s.draft_backend)
        choice = LoadChoice(s.model, Backend(s.backend), draft_backend=draft, n_ctx=s.n_ctx)
        self._loader.load(choice)

    def choose_device(self, kind: str) -> None:
        """Load the model on a device of this kind, where it is not there already."""
        loaded, loading = self._loader.model, bool(self._loader.activity)
        if loaded and not loading and loaded.backend == kind:
            return
        if self._flow.current.backend != kind:
            self._flow.change(backend=kind)
        elif not loading:  # it failed there; the user wants another try
            self.load()

    def _settings_changed(self, names: frozenset[str]) -> None:
        if names & _RELOADS:
            self.load()
