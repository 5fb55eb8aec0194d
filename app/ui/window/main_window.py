"""The window: it makes its parts, lays them out, and wires them to one another.

What is to be done is decided by the controller; the parts know nothing of each other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QSettings, Qt, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QMainWindow,
    QVBoxLayout,
    QWidget,
)

from app import catalog, paths
from app.conversation import Conversation, Removed, Turn
from app.engine import DeviceInfo, EngineDoor, LoadedModel, Reading, preferred_gpu
from app.errors import (
    AttachmentError,
    DeviceError,
    ModelFileError,
    NoModelError,
    OptionError,
    OutOfMemoryError,
    SlipstreamError,
)
from app.files import check_writable
from app.history import Codec, History
from app.library import ModelStatus
from app.settings import RANGES, Settings
from app.ui.archive import Archive
from app.ui.bridge import EngineBridge
from app.ui.chat.chats import Chats
from app.ui.chat.composer import Composer, local_files
from app.ui.chat.context import Context
from app.ui.chat.find import FindBar
from app.ui.look import announce, theme, words
from app.ui.look.column import Column
from app.ui.look.controls import claim_escape, is_paging, is_text, press_focused
from app.ui.look.language import tr
from app.ui.look.notice import Notice, Notices
from app.ui.look.theme import Size, Theme
from app.ui.meters.model import Meters
from app.ui.meters.panel import MeterPanel
from app.ui.models.getting import Getting
from app.ui.models.listing import ModelList, Offer, offer
from app.ui.models.loading import Loader
from app.ui.models.source import JobSource, Models
from app.ui.settings.flow import SettingsFlow
from app.ui.window import geometry
from app.ui.window.actions import Actions, Topic
from app.ui.window.backends import BackendsWatch
from app.ui.window.book import Deleted
from app.ui.window.chat_list import State
from app.ui.window.controller import Controller
from app.ui.window.header import Header
from app.ui.window.porting import Porting
from app.ui.window.proving import Proving
from app.ui.window.sidebar import Sidebar
from app.ui.window.sides import Side, Sides
from app.ui.window.state import state_of
from app.ui.window.status import StatusLine
from app.ui.window.undoing import Undoing
from app.ui.window.vendor import VendorDefaults, defaults
from app.ui.window.writing import Writing

if TYPE_CHECKING:
    from app.drafting import Attachment
    from app.presets import ChatOptions
    from app.ui.models.sheet import ModelsSheet
    from app.ui.proof.page import ProofPage
    from app.ui.settings.chat_sheet import ChatSheet
    from app.ui.settings.sheet import SettingsSheet
    from app.ui.window.help import HelpSheet
    from app.ui.window.presetting import Presetting

_log = logging.getLogger(__name__)

LEAST: Final = (360, 320)
"""Width and height in px: a phone's width, and a small screen's height at 200 per cent."""


_ROOM_FOR_NOTES: Final = 480
"""Height in px from which on there are lines that only tell something."""

_ROOM_FOR_NOTICES: Final = 0.4
"""Of the window's height."""

_ANOTHER_FOLDER: Final = "Choose another folder …"


class MainWindow(QMainWindow):
    closed = Signal()
    closing = Signal()  # it is no longer seen, and may take a moment
    _devices_found = Signal(object)  # a sequence of DeviceInfo

    def __init__(
        self,
        engine: EngineDoor,
        models: Models,
        settings: Settings,
        save: Callable[[Settings], None],
        look: Theme,
        remembered: QSettings | None = None,
        problems: Sequence[str] = (),
        folder_problems: Sequence[str] = (),
        jobs: JobSource | None = None,
        keep_token: Callable[[str], str] = lambda _: "",
        history: History | None = None,
        codec: Codec | None = None,
    ) -> None:
        """`remembered` holds place and size; `problems` were found on the way here,
        `folder_problems` with the folder for chats and models.

        `keep_token` keeps the user's token for the hub, and returns what is to be said of that.
        Without a `history` chats go with the window. `codec` is how figures are exported.
        """
        super().__init__()
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(*LEAST)
        self.setAcceptDrops(True)
        self._look, self._remembered = look, remembered
        self._devices: Sequence[DeviceInfo] = ()
        self._started: object = None  # the chat whose start is told about
        self._wants_gpu = False  # the load of a model failed for want of one
        self._came = ""  # the model that was got and is being loaded

        self.bridge = EngineBridge(engine, self)
        self.flow = SettingsFlow(settings, save, self)
        self.meters = Meters(self)
        self.loader = Loader(self.bridge, models, self)
        self.model_list = ModelList(models, self)
        self.getting = Getting(jobs, self)
        self._models, self._keep_token = models, keep_token
        self.vendor = VendorDefaults(self.flow, self)
        self.archive = Archive(history, self)
        self.controller = Controller(
            self.bridge, self.loader, self.meters, self.flow, self.archive, self
        )
        self.controller.load()  # its files are sought while the window is made

        self.header = Header()
        self.sidebar = Sidebar(self.archive.search)
        self.chats = Chats()
        self.finder = FindBar()
        self.porting = Porting(self.controller.book, codec or Codec(), self)
        self.notices = Notices()
        self.undoing = Undoing(self.notices, self)
        self.composer = Composer()
        self.context = Context(self.bridge, self)
        self.writing = Writing(self.controller, self.composer, self.context, self)
        self.writing.sent.connect(lambda: self.notices.drop("refused"))
        self.panel = MeterPanel(self.meters)
        self.proving = Proving(
            self.controller, self.loader, self.flow, lambda: self.proof_page, self.chats, self
        )
        self.actions_ = Actions(self)
        self._lay_out()
        self._wire()
        self._follow_settings()
        self._find_devices()  # before a load, which may take long
        # What was found meanwhile: so the model is read beside what follows.
        QCoreApplication.sendPostedEvents(None, QEvent.Type.MetaCall.value)

        self.controller.new_chat()
        self.archive.open()
        self._show_loading()
        self.model_list.refresh()
        BackendsWatch(self).changed.connect(self._find_devices)
        for problem in problems:
            self.notices.add(problem)
        for problem in folder_problems:
            self._offer_folder(self.notices.add(problem))
        if models.problem and models.problem not in folder_problems:
            told = self.notices.add(models.problem)
            told.add_button(_ANOTHER_FOLDER).clicked.connect(
                lambda: self.models_sheet.choose_place()
            )
        geometry.place(self, remembered)

    # --- imported and made when they are wanted: none is seen at the start ----------

    @cached_property
    def sheet(self) -> SettingsSheet:
        from app.ui.settings.sheet import SettingsSheet

        flow = self.flow
        sheet = SettingsSheet(flow, self.page, lambda: defaults(flow.current.model))
        self._wire_sheet(sheet)
        sheet.folder_wanted.connect(self._choose_folder)
        self.bridge.model_changed.connect(sheet.set_model)
        sheet.set_model(self.loader.model)
        self._devices_found.connect(sheet.set_devices)
        sheet.set_devices(self._devices)
        return sheet

    @cached_property
    def chat_sheet(self) -> ChatSheet:
        from app.ui.settings.chat_sheet import ChatSheet

        sheet = ChatSheet(self.page)
        self._wire_sheet(sheet)
        return sheet

    @cached_property
    def presetting(self) -> Presetting:
        from app.ui.window.presetting import Presetting

        presetting = Presetting(self.controller, self.chat_sheet, paths.presets_file(), self)
        presetting.failed.connect(self._tell)
        presetting.told.connect(self.notices.add)
        presetting.removed.connect(self._offer_preset_back)
        return presetting

    @cached_property
    def help(self) -> HelpSheet:
        from app.ui.window.help import HelpSheet

        sheet = HelpSheet(self.page)
        self._wire_sheet(sheet)
        sheet.actions_ = self.actions()
        return sheet

    @cached_property
    def models_sheet(self) -> ModelsSheet:
        from app.ui.models.sheet import ModelsSheet

        sheet, flow = ModelsSheet(self._models, self.getting, self.page), self.flow
        self._wire_sheet(sheet)
        sheet.chosen.connect(self.controller.choose_model)
        sheet.folder_chosen.connect(self._move_models)
        sheet.token_given.connect(self._give_token)
        sheet.chunks_wanted.connect(lambda allowed: flow.change(xet=allowed))
        sheet.outdated.connect(self.model_list.refresh)
        flow.follow("xet", sheet.allow_chunks)
        flow.follow("model", sheet.set_chosen)
        self.loader.changed.connect(lambda: sheet.set_in_use(self.loader.in_use))
        sheet.set_in_use(self.loader.in_use)
        self.model_list.changed.connect(sheet.show_models)
        sheet.show_models(self.model_list.known)
        return sheet

    def _on_view(self, sheet: str) -> bool:
        """Whether what the property of that name holds stands there; it is not made for that."""
        made = self.__dict__.get(sheet)
        return made is not None and self.sides.sheet is made

    def _wire_sheet(self, sheet: SettingsSheet | ChatSheet | HelpSheet | ModelsSheet) -> None:
        sheet.hide()
        sheet.closed.connect(self._close_sheet)

    @cached_property
    def proof_page(self) -> ProofPage:
        from app.ui.proof.page import ProofPage

        page = ProofPage(self.bridge)
        self._middle.insertWidget(self._middle.indexOf(self.chats) + 1, page, 1)
        page.link_chosen.connect(self.notices.offer_link)
        page.wrap_chosen.connect(lambda wrap: self.flow.change(wrap_code=wrap))
        page.failed.connect(self._tell)
        page.written.connect(
            lambda path: self.notices.add(
                f"The record is in {path}.",
                f"Anybody checks it with `slipstream selftest --record {path.name}`.",
                topic="record",
            )
        )
        return page

    # --- construction -----------------------------------------------------------

    def _lay_out(self) -> None:
        self.status_line = StatusLine()
        self.demo_note = _caption("The built-in guide is tiny: it knows this app, no more.")

        below = Column()
        for widget in (self.notices, self.composer, self.demo_note):
            below.rows.addWidget(widget)
        self._middle = middle = QVBoxLayout()
        middle.setSpacing(0)
        middle.addWidget(self.status_line)
        middle.addWidget(self.finder)
        middle.addWidget(self.chats, 1)
        middle.addWidget(below)

        body = QHBoxLayout()
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(0)
        body.addLayout(middle, 1)
        self.page = QWidget()
        self.page.setObjectName("page")
        column = QVBoxLayout(self.page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addLayout(body, 1)
        self.setCentralWidget(self.page)
        self.sides = Sides(self.page, body, below, self.sidebar, self.panel)

    def _wire(self) -> None:
        controller, loader, header = self.controller, self.loader, self.header
        self._wire_actions()
        header.chats.clicked.connect(self.actions_.sidebar.trigger)
        header.more.clicked.connect(self._open_menu)
        header.chip.clicked.connect(self.actions_.meters.trigger)
        self.status_line.button.clicked.connect(self.actions_.meters.trigger)
        header.new_chat.clicked.connect(self.actions_.new_chat.trigger)
        header.meters.clicked.connect(self.actions_.meters.trigger)
        header.settings.clicked.connect(self.toggle_settings)
        header.device_chosen.connect(controller.choose_device)
        header.picker.chosen.connect(controller.choose_model)
        header.picker.opened.connect(self.model_list.refresh)
        header.picker.wanted.connect(self._get_model)
        header.picker.managed.connect(self.show_models)
        self._wire_chats()
        self.chats.suggested.connect(self._suggest)
        self.chats.model_wanted.connect(self._take_offer)
        self.chats.link_chosen.connect(self.notices.offer_link)
        self.chats.wrap_chosen.connect(lambda wrap: self.flow.change(wrap_code=wrap))
        self.chats.again_wanted.connect(controller.again)
        self.chats.go_on_wanted.connect(controller.go_on)
        self.chats.shorter_wanted.connect(self._answer_shorter)
        self.chats.edited.connect(controller.edit)
        self.chats.chosen.connect(controller.choose)
        self.chats.removed.connect(controller.remove)
        self.chats.whole_wanted.connect(controller.remember_all)
        self.chats.focus_left.connect(self.composer.field.setFocus)
        self._offer_room()
        controller.edited.connect(self._show_options)
        controller.edited.connect(self.context.recount)
        self.composer.options_wanted.connect(self.actions_.chat_options.trigger)
        self.composer.files_wanted.connect(self.actions_.attach.trigger)
        self.composer.stop_wanted.connect(controller.stop)
        self.panel.prove.clicked.connect(self.actions_.prove.trigger)
        self.panel.replay.clicked.connect(self.actions_.replay.trigger)
        loader.changed.connect(self._enable_actions)
        self.sides.changed.connect(self._show_sides)
        for part in (self.sides, self.notices, self.proving):
            part.focus_left.connect(self.composer.field.setFocus)
        self._wire_models()

        controller.began.connect(self.chats.follow)
        controller.busy_changed.connect(self.composer.set_busy)
        controller.busy_changed.connect(self._enable_actions)
        controller.refused.connect(self._tell_refused)
        self.flow.failed.connect(self._tell_not_saved)
        self.flow.saved.connect(lambda: self.notices.drop("settings"))
        self.model_list.changed.connect(header.picker.set_models)
        self.model_list.failed.connect(lambda error: self._tell(error, "models"))
        self.model_list.changed.connect(lambda _: self.notices.drop("models"))
        loader.changed.connect(self._show_loading)
        loader.failed.connect(self._tell_no_model)
        self.bridge.model_changed.connect(self._show_model)
        self.bridge.model_lost.connect(self._tell_no_model)
        self.bridge.reading.connect(self._show_reading)
        self.bridge.plain_measured.connect(self.meters.set_plain)
        self.bridge.exactness_probed.connect(self.meters.set_exact)
        self.meters.changed.connect(self._show_figures)

    def _wire_models(self) -> None:
        getting = self.getting
        self.model_list.changed.connect(lambda _: self._offer_model())
        getting.ended.connect(self._use_new_model)
        getting.failed.connect(self._tell_not_got)
        getting.stopped.connect(self.model_list.refresh)
        getting.changed.connect(self._show_getting)
        self.model_list.changed.connect(self._tell_unfinished)

    def _wire_chats(self) -> None:
        controller, book, sidebar = self.controller, self.controller.book, self.sidebar
        sidebar.chosen.connect(controller.show_chat)
        sidebar.chosen.connect(self.sides.close_chosen)
        self.writing.edited.connect(book.save)
        self.writing.taken_away.connect(self._offer_attachment_back)
        controller.edited.connect(book.save)
        sidebar.found.connect(self._show_found)
        sidebar.search_left.connect(self.sides.close_chosen)
        sidebar.search_left.connect(self.composer.field.setFocus)
        sidebar.export_wanted.connect(self.porting.choose_export)
        sidebar.import_wanted.connect(self.porting.choose_import)
        self.porting.failed.connect(self._tell)
        self.porting.written.connect(
            lambda path: self.notices.add(f"The chat is in {path}.", topic="export")
        )
        self.finder.closed.connect(self.composer.field.setFocus)
        sidebar.renamed.connect(book.rename)
        sidebar.pinned.connect(book.pin)
        sidebar.deleted.connect(controller.delete_chat)
        book.shown.connect(self._show_chat)
        book.turns_changed.connect(self._show_turns)
        book.listed.connect(self._show_chats)
        book.deleted.connect(self._offer_chat_back)
        book.told.connect(self._tell_of_file)
        self.archive.kept_again.connect(lambda: self.notices.drop("history"))
        controller.removed.connect(self._offer_turns_back)
        controller.answers.changed.connect(self._show_chats)
        controller.answers.ended.connect(lambda live: self._find_again(live.conversation))

    def _wire_actions(self) -> None:
        actions = self.actions_
        actions.connect(actions.new_chat, self.controller.new_chat)
        actions.connect(actions.attach, self._choose_files)
        actions.connect(actions.stop, self.controller.stop)
        actions.connect(actions.again, self.controller.again)
        actions.connect(actions.prove, self.proving.prove)
        actions.connect(actions.replay, self.proving.replay)
        actions.connect(actions.copy_answer, self._copy_last)
        actions.connect(actions.sidebar, lambda: self._toggle_side(Side.CHATS, "show_sidebar"))
        actions.connect(actions.meters, lambda: self._toggle_side(Side.METERS, "show_meters"))
        actions.connect(actions.bottom, lambda: self.chats.view.go_down())
        actions.connect(actions.write, self.composer.field.setFocus)
        actions.connect(actions.models, self.show_models)
        actions.connect(actions.settings, self.toggle_settings)
        actions.connect(actions.chat_options, self._toggle_chat_sheet)
        actions.connect(actions.larger, lambda: self._change_text_size(1))
        actions.connect(actions.smaller, lambda: self._change_text_size(-1))
        actions.connect(actions.usual_size, lambda: self.flow.change(text_size=15))
        for topic, action in actions.help.items():
            actions.connect(action, partial(self._open_help, topic))
        actions.connect(actions.rename, self._rename_chat)
        actions.connect(actions.pin, self._pin_chat)
        actions.connect(actions.delete_chat, self._delete_chat)
        actions.connect(actions.undo, self.undoing.undo)
        self.undoing.changed.connect(actions.undo.setEnabled)
        actions.connect(actions.search, self._search_chats)
        actions.connect(actions.find, self._find)
        actions.connect(actions.import_, self.porting.choose_import)
        for kind, action in actions.exports.items():
            actions.connect(action, partial(self._export, kind))
        actions.connect(actions.quit, self.close)

    def _follow_settings(self) -> None:
        follow = self.flow.follow
        follow("theme", self._look.choose)
        follow("text_size", self._look.set_text_size)
        follow("wrap_code", self._look.set_code_wrap)
        follow("send_with", self.composer.set_send_with)
        follow("send_with", self.chats.set_send_with)
        follow("think", lambda _: self.writing.show_think())
        follow("show_sidebar", lambda wanted: self.sides.want(Side.CHATS, wanted))
        follow("show_meters", lambda wanted: self.sides.want(Side.METERS, wanted))

    # --- chats ------------------------------------------------------------------

    def _choose_files(self) -> None:
        kinds = "Text and PDF files (*.txt *.md *.pdf *.csv *.json *.py);;All files (*)"
        chosen, _ = QFileDialog.getOpenFileNames(self, "Attach files", "", kinds)
        self.writing.attach([Path(name) for name in chosen])
        self.composer.field.setFocus()

    def _suggest(self, text: str) -> None:
        if self.loader.obstacle:
            self.composer.suggest(text)
        else:
            self.controller.ask(text)
        self.composer.field.setFocus()

    def _offer_room(self) -> None:
        """What can be done where a chat has become too long; seen with the warning."""
        controller, add = self.controller, self.composer.add_remedy
        drop = add("Drop oldest", lambda: controller.can_forget)
        drop.clicked.connect(lambda: self._drop_oldest())
        new = add("New chat", lambda: bool(controller.current.turns))
        new.clicked.connect(self.actions_.new_chat.trigger)
        room = add("More room")
        room.setProperty("opens_sheet", True)
        room.clicked.connect(self._show_room)

    def _show_room(self) -> None:
        self.sides.open_sheet(self.sheet)
        self.sheet.reveal("n_ctx")

    def _show_chat(self) -> None:
        self.chats.show_conversation(self.controller.current)
        if self.finder.isVisible():
            self.finder.leave()
        self._show_chats()
        self.composer.field.setFocus()

    def _show_turns(self, chat: Conversation) -> None:
        self.chats.show_turns(chat)
        self._find_again(chat)
        self._show_chats()

    def _find_again(self, chat: Conversation) -> None:
        """There is more of a chat, or less."""
        if chat is self.controller.current and self.finder.isVisible():
            self.finder.renew(chat.path())

    def _show_options(self, chat: Conversation) -> None:
        """It has other ones, or a model is given another part of it."""
        self.chats.show_turns(chat)
        if chat.start is None:
            self.notices.drop("start")
        if self._on_view("chat_sheet") and chat is self.controller.current:
            self.presetting.show(chat)

    def _drop_oldest(self, answer: Turn | None = None) -> None:
        """What that did is seen in the chat, where it may be far up: it is said as well."""
        self.controller.forget_oldest(answer)
        chat = self.controller.current
        if left_out := len(chat.path(answer)) - len(chat.given(answer)):
            oldest = words.number(left_out, "message")
            told = self.notices.add(
                f"The model no longer reads the oldest {oldest} of this chat.",
                "They are still here to be read.",
                topic="start",
            )
            told.add_button("Undo").clicked.connect(self.controller.remember_all)

    def _answer_shorter(self, answer: Turn) -> None:
        """Where nothing can be left out, or nothing can be asked, that is told."""
        controller, chat = self.controller, self.controller.current
        asked = False
        if controller.ask_params() is not None:
            before = len(chat.given(answer))
            self._drop_oldest(answer)
            asked = len(chat.given(answer)) < before and controller.again(answer)
        if not asked:
            self.chats.view.renew(answer)  # why it failed stays
        self.composer.field.setFocus()  # the button is gone, and with it the focus

    def _show_chats(self) -> None:
        controller = self.controller
        states = dict.fromkeys(controller.unseen, State.UNSEEN)
        states |= {
            live.conversation.id: State.WAITING if live.waiting else State.ANSWERING
            for live in reversed(controller.answers.all)
        }
        self.sidebar.show_chats(controller.book.summaries, states, controller.current.id)
        self._show_context()
        self._enable_actions()

    def _show_list(self) -> None:
        if not self.sides.seen(Side.CHATS):
            self.actions_.sidebar.trigger()

    def _rename_chat(self) -> None:
        self._show_list()
        self.sidebar.rename(self.controller.current.id)

    def _pin_chat(self) -> None:
        chat = self.controller.current
        self.controller.book.pin(chat.id, not chat.pinned)

    def _delete_chat(self) -> None:
        self.controller.delete_chat(self.controller.current.id)

    def _search_chats(self) -> None:
        self._show_list()
        self.sidebar.start_search()

    def _find(self, words: str = "") -> None:
        self.finder.start(self.chats.view, self.controller.current.path(), words)

    def _show_found(self, chat: str, turn: str, words: str) -> None:
        """Open a chat where the search found something."""

        def shown(found: Conversation) -> None:
            if turn in found.turns and found.turns[turn] not in found.path():
                found.choose(found.turns[turn])
            self.controller.show_chat(chat)
            self._find(words)
            self.finder.go_to(turn)

        self.controller.book.want_chat(chat, shown)

    def _export(self, kind: str) -> None:
        self.porting.choose_export(self.controller.current.id, kind)

    def _offer_chat_back(self, deleted: Deleted) -> None:
        self.undoing.offer(
            f"“{deleted.summary.title}” is deleted.",
            "chat",
            lambda: self.controller.book.undelete(deleted),
        )

    def _offer_turns_back(self, chat: Conversation, removed: Removed) -> None:
        count = len(removed.turns)
        self.undoing.offer(
            f"{words.number(count, 'message')} deleted.",
            "message",
            lambda: self.controller.restore(chat, removed),
            count,
        )

    def _offer_attachment_back(self, file: Attachment, undo: Callable[[], None]) -> None:
        self.undoing.offer(f"“{file.name}” is no longer attached.", "attachment", undo)

    def _offer_preset_back(self, name: str, preset: ChatOptions) -> None:
        self.undoing.offer(
            f"The preset “{name}” is deleted.",
            "preset",
            lambda: self.presetting.restore(name, preset),
        )

    def _copy_last(self) -> None:
        if (answer := self.controller.current.last_answer) is not None:
            QGuiApplication.clipboard().setText(answer.text)
            announce.say(self.chats, tr("The answer is copied."))

    def _enable_actions(self) -> None:
        chat, actions = self.controller.current, self.actions_
        answered = chat.last_answer is not None
        actions.stop.setEnabled(self.controller.busy)
        actions.prove.setEnabled(self.proving.question is not None)
        actions.replay.setEnabled(self.proving.answer is not None)
        self.panel.offer(prove=actions.prove.isEnabled(), replay=actions.replay.isEnabled())
        for action in (actions.again, actions.copy_answer):
            action.setEnabled(answered)
        of_chat = (actions.rename, actions.pin, actions.delete_chat, actions.find)
        for action in (*of_chat, *actions.exports.values()):
            action.setEnabled(bool(chat.turns))
        actions.pin.setText(tr("Unpin this chat" if chat.pinned else "Pin this chat"))

    # --- model and figures --------------------------------------------------------

    def _show_loading(self) -> None:
        self.composer.set_obstacle(self.loader.obstacle)
        if not self.loader.obstacle:
            self.notices.drop("unready")
        self._show_state()
        self.header.picker.set_in_use(self.loader.in_use)
        self._offer_model()
        self._show_demo_note()

    def _show_model(self, model: LoadedModel | None) -> None:
        self.meters.set_model(model)
        self.context.set_size(model.n_ctx if model else 0)
        self.header.set_model(model)
        if model is None:
            return
        self._wants_gpu = False
        self.notices.drop("model")
        self.notices.drop("repairs")
        if self._came == self.flow.current.model:
            self._tell_came(self._came, "It answers from now on.")
        self._came = ""
        if model.repairs:
            self.notices.add("The model's files are not as usual.", model.repairs, topic="repairs")

    def _show_reading(self, reading: Reading | None) -> None:
        """How far a long prompt is read."""
        self.composer.set_hint(words.reading(reading.done, reading.total) if reading else "")

    def _show_figures(self) -> None:
        self._show_state()
        self._show_context()
        counters = self.meters.counters
        if counters.tokens_per_s:
            gain = self.meters.speedup.times
            self.status_line.tell(
                *([f"speed-up {words.times(gain)}"] if gain else []),  # why not, the panel tells
                words.rate(counters.tokens_per_s),
                f"{words.length(counters.totals.mean_accepted_length)} per round",
            )
        else:
            self.status_line.tell(tr("Meters"))

    def _show_state(self) -> None:
        self.header.chip.show_state(state_of(self.meters, self.loader.activity))

    def _show_context(self) -> None:
        if self.controller.current is not self._started:
            self._started = self.controller.current
            self.notices.drop("start")
            if self._on_view("chat_sheet"):
                self.presetting.show(self.controller.current)
        self.writing.show(self.controller.current)

    def _find_devices(self) -> None:
        request = self.bridge.devices()
        request.finished.connect(self._show_devices)
        request.failed.connect(lambda error: self._show_devices(()))

    def _show_devices(self, devices: Sequence[DeviceInfo]) -> None:
        self._devices = devices
        self.header.set_devices(devices)
        self._devices_found.emit(devices)
        if self._wants_gpu and self._has_gpu() and not self.loader.activity:
            self.notices.drop("model")
            self.controller.load()

    def _has_gpu(self) -> bool:
        gpu = preferred_gpu(self._devices)
        return gpu is not None and gpu.usable

    def _tell(self, error: SlipstreamError, topic: str = "") -> Notice:
        return self.notices.add(error.message, error.remedy, level="error", topic=topic)

    def _tell_no_model(self, error: SlipstreamError) -> None:
        """It could not be loaded, or went with its device: with the buttons that may mend it."""
        self._wants_gpu = self.flow.current.backend == "gpu" and not self._has_gpu()
        self.notices.drop("came")
        told = self._tell(error, "model")
        if isinstance(error, OutOfMemoryError) and self.flow.current.n_ctx is not None:
            told.add_button("Fit the context").clicked.connect(lambda: self.flow.change(n_ctx=None))
        told.add_button("Try again").clicked.connect(self.controller.load)
        if isinstance(error, DeviceError) and self.flow.current.backend != "cpu":
            told.add_button("Use the CPU").clicked.connect(
                lambda: self.flow.change(backend="cpu", draft_backend="same")
            )
        if isinstance(error, NoModelError | ModelFileError):
            told.add_button("Show the models").clicked.connect(self.show_models)
        elif isinstance(error, OptionError):
            told.add_button("Open the settings").clicked.connect(self.toggle_settings)

    def _tell_of_file(self, error: SlipstreamError) -> None:
        told = self._tell(error, "history")
        if not self.controller.book.lasting:
            self._offer_folder(told)

    def _offer_folder(self, notice: Notice) -> None:
        button = notice.add_button(_ANOTHER_FOLDER)
        button.clicked.connect(lambda: self._choose_folder("data"))

    def _tell_not_saved(self, error: SlipstreamError) -> None:
        told = self._tell(error, "settings")
        told.add_button("Try again").clicked.connect(self.flow.save_again)

    def _tell_refused(self, error: SlipstreamError) -> None:
        """Why nothing was asked."""
        about_file, unready = isinstance(error, AttachmentError), bool(self.loader.obstacle)
        topic = "" if about_file else "unready" if unready else "refused"
        told = self._tell(error, topic)
        if unready and not about_file and not self.loader.activity:
            told.add_button("Show the models").clicked.connect(self.show_models)
        elif isinstance(error, OptionError):
            told.add_button("Open the settings").clicked.connect(self.toggle_settings)

    # --- getting models -------------------------------------------------------------

    def show_models(self) -> None:
        self.model_list.refresh()
        self.sides.open_sheet(self.models_sheet)

    def _get_model(self, model: str) -> None:
        """The one button: what is here already, or stands still, is only shown."""
        self.show_models()
        known = catalog.find(model)
        if known is not None and model not in self.models_sheet.cards:
            self.models_sheet.get(known)

    def _offer_model(self) -> None:
        """An empty chat offers the model that is better than the guide."""
        offered = self._offer()
        self.chats.offer_model(*(offered[1:3] if offered else ("", "")))

    def _offer(self) -> Offer | None:
        return offer(self.model_list.known, self.loader.in_use, self.getting.model)

    def _take_offer(self) -> None:
        offered = self._offer()
        if offered is not None and offered.here:
            self.controller.choose_model(offered.model)
        elif offered is not None:
            self._get_model(offered.model)

    def _use_new_model(self, model: str) -> None:
        self.model_list.refresh()
        self._came = model
        self._tell_came(model, "It is being loaded.")
        self.controller.choose_model(model, anew=True)

    def _tell_came(self, model: str, what_now: str) -> None:
        known = catalog.find(model)
        self.notices.add(f"{known.title if known else model} is ready.", what_now, topic="came")

    def _show_getting(self) -> None:
        getting = self.getting
        fraction = getting.state.fraction if getting.state else 0.0
        self.header.picker.set_going(getting.title, fraction)
        self._offer_model()
        if getting.model:
            self.notices.drop("unfinished")

    def _tell_unfinished(self, models: Sequence[ModelStatus]) -> None:
        """Once, at the start: what a former session did not finish."""
        self.model_list.changed.disconnect(self._tell_unfinished)
        for model in models:
            if model.failure is not None:
                why = model.failure.message
                notice = self.notices.add(
                    f"{model.title} is not finished yet.", why, topic="unfinished"
                )
                notice.add_button("Show the models").clicked.connect(self.show_models)

    def _tell_not_got(self, error: SlipstreamError) -> None:
        self.model_list.refresh()  # the card there tells
        if self.models_sheet.isHidden():
            notice = self._tell(error, topic="unfinished")
            notice.add_button("Show the models").clicked.connect(self.show_models)

    def _move_models(self, folder: str) -> None:
        place = Path(folder)
        try:
            check_writable(place)
            self.getting.move(place)
        except SlipstreamError as error:
            self.models_sheet.say(error.message, error.remedy, "error")
            return
        # A place within the data, and the usual one above all, goes where that goes.
        if place.is_relative_to(paths.data()):
            folder = str(place.relative_to(paths.data()))
        self.flow.change(models_folder="" if place == paths.models() else folder)
        self._models.root = place
        self.model_list.refresh()

    def _give_token(self, token: str) -> None:
        self.models_sheet.say(self._keep_token(token) or "The token is kept in the keyring.")

    # --- Qt -----------------------------------------------------------------------

    def toggle_settings(self) -> None:
        if self._on_view("sheet"):
            self._close_sheet()
        else:
            self.sides.open_sheet(self.sheet)

    def _toggle_chat_sheet(self) -> None:
        if self._on_view("chat_sheet"):
            self._close_sheet()
        else:
            self.presetting.show(self.controller.current)
            self.sides.open_sheet(self.chat_sheet)

    def _change_text_size(self, by: int) -> None:
        wanted = self.flow.current.text_size + by
        if RANGES["text_size"].holds(wanted):
            self.flow.change(text_size=wanted)

    def _choose_folder(self, setting: str) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Move to", str(paths.data().parent))
        if folder:
            self.flow.change(**{setting: folder})
            told = f"Chats and models move to {folder} when Slipstream starts again."
            if Path(folder) == paths.data():
                told = "Chats and models are in that folder already: nothing moves."
            self.notices.add(told, topic="data")

    def _open_help(self, topic: Topic) -> None:
        self.help.devices = self._devices
        self.help.show_topic(topic)
        self.sides.open_sheet(self.help)

    def _close_sheet(self) -> None:
        self.sides.close_sheet()
        self.composer.field.setFocus()

    def _open_menu(self) -> None:
        button = self.header.more
        menu = self.actions_.menu
        corner = button.mapToGlobal(button.rect().bottomRight())
        menu.popup(QPoint(corner.x() - menu.sizeHint().width(), corner.y()))

    def _toggle_side(self, side: Side, setting: str) -> None:
        wanted = self.sides.toggle(side)
        if wanted is not None:
            self.flow.change(**{setting: wanted})
        self._show_sides()  # the action has ticked itself

    def _show_sides(self) -> None:
        meters = self.sides.seen(Side.METERS)
        self.actions_.sidebar.setChecked(self.sides.seen(Side.CHATS))
        self.actions_.meters.setChecked(meters)
        high = self.height() >= _ROOM_FOR_NOTES
        wanted = self.flow.current.show_meters and not self.sides.fits(Side.METERS)
        self.status_line.setVisible(wanted and high)
        self.header.set_width(self.width())
        self._show_demo_note()

    def _show_demo_note(self) -> None:
        """Where the guide answers, and there is room."""
        high = self.height() >= _ROOM_FOR_NOTES
        self.demo_note.setVisible(self.loader.in_use == catalog.DEMO.id and high)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.sides.place(self.header.height())
        self.notices.set_room(round(self.height() * _ROOM_FOR_NOTICES))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if local_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Files dropped anywhere go with the message."""
        self.writing.attach(local_files(event.mimeData()))
        event.acceptProposedAction()

    def focusNextPrevChild(self, next: bool) -> bool:
        self.chats.view.order_tabs()
        return super().focusNextPrevChild(next)

    def event(self, event: QEvent) -> bool:
        override = event.type() == QEvent.Type.ShortcutOverride
        if override and self.sides.floats and claim_escape(event):
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """What whatever has the focus did not want."""
        if press_focused(event):
            return
        if event.key() == Qt.Key.Key_Escape and self.sides.close_floating():
            self.composer.field.setFocus()
        elif event.key() == Qt.Key.Key_Escape and self.proving.open:
            self.proving.leave()
        elif is_paging(event):
            QApplication.sendEvent(self.chats.view.verticalScrollBar(), event)
        elif is_text(event) and not self.composer.field.hasFocus():
            self.composer.field.setFocus()
            QApplication.sendEvent(self.composer.field, event)
        else:
            super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._remembered is not None:
            geometry.save(self, self._remembered)
        self.hide()  # what follows may take a moment
        self.closing.emit()
        self.writing.keep()
        if "chat_sheet" in self.__dict__:
            self.chat_sheet.keep()
        self.proving.leave()
        self.controller.close()
        self.getting.close(2.0)
        self.loader.close(2.0)
        for close in (self.flow.close, self.bridge.close, self.controller.keep_what_came):
            try:
                close()
            except SlipstreamError:
                _log.exception("The window did not close well.")
        event.accept()
        self.closed.emit()


def _caption(text: str) -> QLabel:
    result = QLabel(tr(text))
    result.setProperty("kind", "caption")
    result.setFont(theme.font(Size.SMALL))
    result.setAlignment(Qt.AlignmentFlag.AlignCenter)
    result.setWordWrap(True)
    return result
