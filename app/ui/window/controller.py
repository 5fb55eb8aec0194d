"""What the window does: the chats, the one that is shown, the answers that come and wait.

It knows no widget. Whoever shows something listens to its signals, and every decision
(may this be asked now? is there anything to load?) is made here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app import catalog
from app.conversation import Conversation, End, Removed, Role, Turn
from app.engine import PENALTIES, AskParams, Backend, Figures, KvType, Sampling, Verify
from app.errors import ContextFullError, EngineError, SlipstreamError
from app.loading import LoadChoice
from app.presets import ChatOptions
from app.ui.archive import Archive
from app.ui.bridge import EngineBridge
from app.ui.chat.live_turn import LiveTurn, goes_on
from app.ui.meters.model import Meters
from app.ui.models.loading import Loader
from app.ui.settings.flow import SettingsFlow
from app.ui.window.answers import Answers
from app.ui.window.book import Book
from app.ui.window.vendor import in_chat

_RELOADS: Final = frozenset({"model", "backend", "draft_backend", "n_ctx", "threads", "kv_type"})
"""Settings that another load has to bring into force."""

KEEP_MS: Final = 700
"""How often what came of an answer is kept while it comes."""


class Controller(QObject):
    began = Signal(object)  # LiveTurn: it waits, or comes
    busy_changed = Signal(bool)  # whether the shown chat has an answer that comes or waits
    refused = Signal(object)  # SlipstreamError: why nothing was asked
    edited = Signal(object)  # Conversation: its options, or what of it a model is given
    removed = Signal(object, object)  # Conversation, Removed: turns that can come back

    def __init__(
        self,
        bridge: EngineBridge,
        loader: Loader,
        meters: Meters,
        flow: SettingsFlow,
        archive: Archive | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._loader, self._meters, self._flow = loader, meters, flow
        self.archive = archive or Archive(None, self)
        self.book = Book(self.archive, self)
        self.answers = Answers(bridge, self)
        self.unseen: set[str] = set()  # chats whose answer ended while another was on view
        self.book.held = self._holds
        self._keep = QTimer(self, interval=KEEP_MS)
        self._keep.timeout.connect(self._keep_running)
        self._was_busy = False
        self.book.shown.connect(self._chat_shown)
        self.answers.began.connect(self._answer_began)
        self.answers.ended.connect(self._answer_ended)
        self.answers.changed.connect(self._tell_busy)
        for changed in (self.answers.changed, self.book.shown, self.book.turns_changed):
            changed.connect(lambda *_: self._show_meters())
        loader.changed.connect(self._loader_changed)
        flow.changed.connect(self._settings_changed)

    # --- chats ------------------------------------------------------------------------

    @property
    def current(self) -> Conversation:
        return self.book.current

    def new_chat(self) -> None:
        self.book.show_new()

    def show_chat(self, chat: str) -> None:
        self.book.show_chat(chat)

    def delete_chat(self, chat: str) -> None:
        for live in reversed(self.answers.of(chat)):
            live.stop(End.STOPPED)
        self.book.delete(chat)

    # --- answers ----------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether the shown chat has an answer that comes or waits."""
        return bool(self.answers.of(self.current.id))

    def ask(self, text: str) -> bool:
        """Ask in the shown chat, after what is asked already; False if it cannot be."""
        if (params := self.ask_params()) is None:
            return False
        self._ask(text, params)
        return True

    def edit(self, question: Turn, text: str) -> bool:
        """Put a question anew, beside the old one; False if that cannot be."""
        if (params := self.ask_params()) is None:
            return False
        self._make_room(question)
        self._ask(text, params, instead_of=question)
        question.draft = ""
        return True

    def again(self, answer: Turn | None = None) -> bool:
        """Make an answer of the shown chat, or its last one, anew; False if that cannot be."""
        chat = self.current
        asked = chat.turns.get(answer.parent or "") if answer else chat.last_question
        if asked is None or (params := self.ask_params()) is None:
            return False
        # First of all: an old one that waits ends at once, and goes only if it is not alone.
        new = chat.answer(asked)
        for live in self.answers.of(chat.id):
            if live.turn.parent == asked.id:
                live.stop(End.REPLACED)
        self._answer(chat, asked, new, params)
        return True

    def go_on(self, answer: Turn) -> bool:
        """Go on with an answer that ended too soon; False if that cannot be."""
        chat = self.current
        if not goes_on(answer) or self._is_live(answer) or (p := self.ask_params()) is None:
            return False
        self._begin(LiveTurn(chat, answer, p, self))
        return True

    def stop(self) -> None:
        """The answer of the shown chat; it was the user."""
        self.answers.stop(self.current.id, End.STOPPED)

    def choose(self, turn: Turn) -> None:
        """Show the branch of the shown chat that `turn` belongs to."""
        self.current.choose(turn)
        self.book.save(self.current)
        self.book.turns_changed.emit(self.current)
        self._tell_busy()

    def remove(self, turn: Turn) -> None:
        """Take a turn out of the shown chat: see `Conversation.remove`."""
        chat = self.current
        for live in reversed(self.answers.of(chat.id)):
            if turn in chat.path(live.turn):
                live.stop(End.STOPPED)
        removed = chat.remove(turn)
        self._moved(chat, removed, gone=[t.id for t in removed.turns])
        self.removed.emit(chat, removed)

    def restore(self, chat: Conversation, removed: Removed) -> None:
        if chat.restore(removed):
            self._moved(chat, removed)

    def _moved(self, chat: Conversation, removed: Removed, gone: list[str] | None = None) -> None:
        moved = [chat.turns[id_] for id_, _ in removed.moved if id_ in chat.turns]
        self.book.save(chat, [*moved, *([] if gone else removed.turns)], gone or ())
        self.book.turns_changed.emit(chat)

    def _make_room(self, question: Turn) -> None:
        """What comes or waits behind a question that is put anew is wanted no more."""
        chat = self.current
        for live in reversed(self.answers.of(chat.id)):
            if question in chat.path(live.turn):
                live.stop(End.REPLACED)

    def _ask(self, text: str, params: AskParams, instead_of: Turn | None = None) -> None:
        question = self.current.ask(text, instead_of=instead_of)
        self._answer(self.current, question, self.current.answer(question), params)

    def _answer(self, chat: Conversation, question: Turn, answer: Turn, params: AskParams) -> None:
        live = LiveTurn(chat, answer, params, self)
        self.book.use(chat)
        self._begin(live, question)

    def _begin(self, live: LiveTurn, *also: Turn) -> None:
        chat = live.conversation
        self.answers.add(live)
        self.began.emit(live)  # first: what shows the turn then shows it as one that comes
        self.book.turns_changed.emit(chat)
        # Not before its question is kept: then nothing is ever answered that is not known.
        self.book.save(chat, [*also, live.turn], then=lambda: self.answers.set_ready(live))

    def _answer_began(self, live: LiveTurn) -> None:
        if live.reply is not None:
            self._meters.follow(live.reply, live.turn.id)
        self._keep.start()

    def _answer_ended(self, live: LiveTurn) -> None:
        if self.answers.running is None:
            self._keep.stop()
        chat, turn = live.conversation, live.turn
        if turn.id in chat.turns:
            unsaid = turn.end is End.REPLACED and not turn.said and not chat.below(turn.id)
            if unsaid and len(chat.beside(turn)) > 1:  # a branch with nothing on it
                self._moved(chat, chat.remove(turn), gone=[turn.id])
            else:
                self.book.save(chat, [turn])
        if chat is not self.current:
            self.unseen.add(chat.id)

    def _keep_running(self) -> None:
        if (live := self.answers.running) is not None and live.turn.id in live.conversation.turns:
            self.book.save(live.conversation, [live.turn])

    def _holds(self, chat: str) -> bool:
        """Whether there is more of a chat than its file has."""
        known = self.book.get(chat)
        edited = known is not None and any(turn.draft for turn in known.turns.values())
        return edited or bool(self.answers.of(chat)) or self.archive.unkept(chat)

    def _chat_shown(self, chat: Conversation) -> None:
        self.unseen.discard(chat.id)
        self._tell_busy()

    def _show_meters(self) -> None:
        """Of the chat on view: the answer that comes, else the newest as it was."""
        running = (live.turn for live in self.answers.of(self.current.id) if not live.waiting)
        answer = next(running, self.current.last_answer)
        figures = answer.figures if answer else None
        self._meters.show(
            answer.id if answer else "", figures if isinstance(figures, Figures) else None
        )

    def _tell_busy(self) -> None:
        if self.busy != self._was_busy:
            self._was_busy = self.busy
            self.busy_changed.emit(self.busy)

    def _is_live(self, turn: Turn) -> bool:
        return any(live.turn is turn for live in self.answers.all)

    def ask_params(self) -> AskParams | None:
        """How the next answer of the shown chat is made; None where none can be now, which is
        told."""
        if self._loader.obstacle or self._loader.model is None:
            self.refused.emit(_no_model(self._loader.activity))
            return None
        settings = replace(self._flow.current, model=self._loader.in_use)  # of what answers
        s = in_chat(settings, ChatOptions.of_json(self.current.options))
        try:
            penalties = {name: getattr(s, name) for name in PENALTIES}
            sampling = Sampling(s.temperature, s.top_k, s.top_p, s.min_p, s.seed, **penalties)
            limit = s.max_tokens or self._loader.model.n_ctx  # what the context holds
            return AskParams(
                limit,
                Verify(s.verify),
                sampling,
                s.block,
                lookup=s.lookup,
                think=s.think,
                loop_guard=s.loop_guard,
                think_budget=s.think_budget,
            )
        except SlipstreamError as error:
            self.refused.emit(error)
            return None

    # --- what a model is given -----------------------------------------------------

    @property
    def can_forget(self) -> bool:
        """Whether a model could be given less of the shown chat."""
        return sum(turn.role is Role.USER for turn in self.current.given()) > 1

    def forget_oldest(self, answer: Turn | None = None) -> None:
        """Have a model be given the newer half of what it is given of the shown chat.

        That is of the path to `answer`, where there is one: what is below it is not asked again.
        """
        questions = [t for t in self.current.given(answer) if t.role is Role.USER]
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

    def set_options(self, options: ChatOptions, chat: Conversation | None = None) -> None:
        """What holds for one chat alone, the shown one where none is named."""
        chat = chat or self.current
        chat.options = options.json()
        self.edited.emit(chat)

    @property
    def thinks(self) -> bool:
        """Whether the next answer of the shown chat is thought about first."""
        return ChatOptions.of_json(self.current.options).over(self._flow.current).think

    def set_think(self, think: bool) -> None:
        """For the shown chat where it has that of its own, else for all."""
        options = ChatOptions.of_json(self.current.options)
        if options.get("think") is None:
            self._flow.change(think=think)
        elif options.get("think") != think:
            self.set_options(options.choose("think", think))

    def _start_at(self, turn: str | None) -> None:
        self.current.start = turn
        self.edited.emit(self.current)

    # --- the model --------------------------------------------------------------

    def load(self) -> None:
        """Load what the settings say, in place of what is loaded. What waits goes on then."""
        self.answers.set_model(None)
        self.answers.stop_running(End.RELOADED)
        s = self._flow.current
        draft = None if s.draft_backend == "same" else Backend(s.draft_backend)
        known = catalog.find(s.model)
        # Beyond what it was made for, a model answers nonsense and takes memory for it.
        n_ctx = s.n_ctx and min(s.n_ctx, (known and known.max_context) or s.n_ctx)
        self._loader.load(
            LoadChoice(
                s.model,
                Backend(s.backend),
                draft_backend=draft,
                n_ctx=n_ctx,
                threads=s.threads,
                kv_type=None if s.kv_type == "auto" else KvType(s.kv_type),
            )
        )

    def choose_model(self, model: str, *, anew: bool = False) -> None:
        """Load this model, where it is not in use already or has other files now (`anew`). The
        settings may have named it before: it could not be loaded then."""
        if self._flow.current.model != model:
            self._flow.change(model=model)
        elif anew or self._loader.in_use != model:
            self.load()

    def choose_device(self, kind: str) -> None:
        """Load the model on a device of this kind, where it is not there already."""
        loaded, loading = self._loader.model, bool(self._loader.activity)
        if loaded and not loading and loaded.backend == kind:
            return
        if self._flow.current.backend != kind:
            self._flow.change(backend=kind)
        elif not loading:  # it failed there; the user wants another try
            self.load()

    def _loader_changed(self) -> None:
        loader = self._loader
        title = loader.pair.title if loader.pair else ""
        self.answers.set_model(None if loader.obstacle else loader.model, title)

    def _settings_changed(self, names: frozenset[str]) -> None:
        if names & _RELOADS:
            self.load()

    # --- the end ----------------------------------------------------------------------

    def close(self) -> None:
        """Nothing more is begun. What came by now is kept, with the reason why it ended."""
        self._keep.stop()
        self.answers.set_model(None)
        self.answers.stop_all(End.CLOSED)

    def keep_what_came(self) -> None:
        """The last word of `close`, when the engine has ended."""
        for live in self.answers.all:  # its end did not come
            live.turn.end = End.CLOSED
            self.book.save(live.conversation, [live.turn])
        self.archive.close()


def _no_model(activity: str) -> EngineError:
    if activity:
        return EngineError("The model is on its way.", remedy="Ask again once it is loaded.")
    return EngineError("No model is loaded.", remedy="Choose one, then ask again.")
