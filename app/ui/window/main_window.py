"""The window. Its parts know nothing of each other; `_wire` is where they meet."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from PySide6.QtCore import QSettings, Qt
from PySide6.QtGui import QCloseEvent, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QMainWindow,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.engine import (
    Answer,
    AskParams,
    DeviceInfo,
    EngineDoor,
    LoadedModel,
    Prefilled,
    Sampling,
    Verify,
)
from app.errors import SlipstreamError
from app.settings import Settings
from app.ui.bridge import EngineBridge
from app.ui.chat.answering import Answering
from app.ui.chat.composer import Composer
from app.ui.chat.conversation import Conversation
from app.ui.chat.view import ChatView
from app.ui.look import theme, words
from app.ui.look.notice import Notices
from app.ui.look.theme import COLUMN, Size, Space, Theme
from app.ui.meters.panel import MeterPanel
from app.ui.models.loading import Loader
from app.ui.models.source import Models
from app.ui.settings.sheet import SettingsSheet
from app.ui.window.actions import Actions
from app.ui.window.header import Header
from app.ui.window.sidebar import Sidebar
from app.ui.window.state import state_of

_log = logging.getLogger(__name__)

ROOM_FOR_METERS: Final = 940
ROOM_FOR_CHATS: Final = 1180
"""Widths in px from which on the side panels are shown, where they are wanted."""


class MainWindow(QMainWindow):
    def __init__(
        self,
        engine: EngineDoor,
        models: Models,
        settings: Settings,
        save: Callable[[Settings], None],
        look: Theme,
        geometry: QSettings | None = None,
    ) -> None:
        super().__init__()
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(560, 420)
        self._models, self._settings, self._save, self._look = models, settings, save, look
        self._geometry = geometry
        self._loaded: LoadedModel | None = None
        self._activity = ""
        self._used = 0
        self._conversations: list[Conversation] = []
        self._views: list[ChatView] = []

        self.bridge = EngineBridge(engine, self)
        self.answering = Answering(self.bridge, self)
        self.loader = Loader(self.bridge, models, self)
        self.header = Header()
        self.sidebar = Sidebar()
        self.chats = QStackedWidget()
        self.composer = Composer()
        self.meters = MeterPanel()
        self.actions_ = Actions(self)
        self._lay_out()
        self.sheet = SettingsSheet(settings, self.page)
        self.sheet.hide()
        self._wire()

        self.new_chat()
        self._apply(settings)
        self.bridge.list_devices()
        self.loader.load(settings)
        self._restore_geometry()
        self.composer.field.setFocus()

    # --- construction -----------------------------------------------------------

    def _lay_out(self) -> None:
        self.notices = Notices()
        self.line = QLabel()
        self.line.setProperty("kind", "caption")
        self.line.setFont(theme.font(Size.SMALL))
        self.line.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.line.setContentsMargins(0, Space.S, 0, Space.S)
        self.honest = QLabel("The built-in guide is a tiny demo model: it knows this app, no more.")
        self.honest.setProperty("kind", "caption")
        self.honest.setFont(theme.font(Size.SMALL))
        self.honest.setAlignment(Qt.AlignmentFlag.AlignCenter)

        below = QWidget()
        below.setMaximumWidth(COLUMN + 2 * Space.M)
        below_column = QVBoxLayout(below)
        below_column.setContentsMargins(0, Space.S, 0, Space.M)
        below_column.setSpacing(Space.S)
        below_column.addWidget(self.notices)
        below_column.addWidget(self.composer)
        below_column.addWidget(self.honest)
        centred = QHBoxLayout()
        centred.setContentsMargins(Space.M, 0, Space.M, 0)
        centred.addStretch(1)
        centred.addWidget(below, 1000)
        centred.addStretch(1)
        middle = QVBoxLayout()
        middle.setSpacing(0)
        middle.addWidget(self.line)
        middle.addWidget(self.chats, 1)
        middle.addLayout(centred)

        body = QHBoxLayout()
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(0)
        body.addWidget(self.sidebar)
        body.addLayout(middle, 1)
        body.addWidget(self.meters)
        self.page = QWidget()
        self.page.setObjectName("page")
        column = QVBoxLayout(self.page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addLayout(body, 1)
        self.setCentralWidget(self.page)

    def _wire(self) -> None:
        actions, header = self.actions_, self.header
        actions.connect(actions.new_chat, self.new_chat)
        actions.connect(actions.stop, self.answering.stop)
        actions.connect(actions.again, self.answer_again)
        actions.connect(actions.copy_answer, self._copy_last)
        actions.sidebar.triggered.connect(lambda on: self._change(show_sidebar=on))
        actions.meters.triggered.connect(lambda on: self._change(show_meters=on))
        actions.connect(actions.bottom, lambda: self.view.go_down())
        actions.connect(actions.write, self.composer.field.setFocus)
        actions.connect(actions.settings, self.toggle_settings)
        actions.connect(actions.quit, self.close)
        header.menu.clicked.connect(self._open_menu)
        header.new_chat.clicked.connect(self.new_chat)
        header.meters.clicked.connect(actions.meters.trigger)
        header.settings.clicked.connect(self.toggle_settings)
        header.device_chosen.connect(lambda kind: self._change(backend=kind))
        header.picker.chosen.connect(lambda model: self._change(model=model))
        self.sidebar.chosen.connect(self._show_chat)
        self.composer.send_wanted.connect(self.send)
        self.composer.stop_wanted.connect(self.answering.stop)
        self.composer.think_changed.connect(lambda think: self._change(think=think))
        self.sheet.changed.connect(self._take)
        self.sheet.closed.connect(self.toggle_settings)

        self.loader.preparing.connect(self._show_activity)
        self.loader.progressed.connect(self._show_progress)
        self.loader.loaded.connect(self._model_loaded)
        self.loader.failed.connect(self._model_failed)
        self.bridge.devices_found.connect(self._devices_found)
        self.bridge.plain_measured.connect(self.meters.set_plain)
        self.bridge.plain_measured.connect(self._show_state)
        self.answering.began.connect(self.meters.begin)
        self.answering.rounds_came.connect(self.meters.add)
        self.answering.rounds_came.connect(self._count_used)
        self.answering.prompt_read.connect(self._prompt_read)
        self.answering.ended.connect(self.meters.end)
        self.answering.ended.connect(self._answer_ended)
        self.answering.busy_changed.connect(self.composer.set_busy)
        self.answering.busy_changed.connect(self._enable_actions)

    # --- chats ------------------------------------------------------------------

    @property
    def view(self) -> ChatView:
        return self._views[self.chats.currentIndex()]

    @property
    def conversation(self) -> Conversation:
        return self._conversations[self.chats.currentIndex()]

    def new_chat(self) -> None:
        """An empty chat; the one that is empty already, if there is one."""
        self.answering.stop()
        empty = next((i for i, c in enumerate(self._conversations) if not c.exchanges), None)
        if empty is None:
            view = ChatView()
            view.suggested.connect(self.send)
            view.link_chosen.connect(self.notices.offer_link)
            view.again_wanted.connect(self.answer_again)
            self._conversations.append(Conversation())
            self._views.append(view)
            empty = self.chats.addWidget(view)
        self._show_chat(empty)
        self.composer.field.setFocus()

    def send(self, text: str) -> None:
        if (params := self._ask_params()) is not None:
            self.answering.ask(self.conversation, self.view, text, params)
            self._show_titles()

    def answer_again(self) -> None:
        if not self.conversation.exchanges or self.answering.busy:
            return
        if (params := self._ask_params()) is not None:
            self.answering.again(self.conversation, self.view, params)

    def _show_chat(self, index: int) -> None:
        if index != self.chats.currentIndex():
            self.answering.stop()
        self.chats.setCurrentIndex(index)
        self._used = 0
        self._show_used()
        self._show_titles()
        self._enable_actions()

    def _show_titles(self) -> None:
        titles = [c.title for c in self._conversations]
        self.sidebar.show_titles(titles, self.chats.currentIndex())

    def _copy_last(self) -> None:
        if self.view.answers:
            QGuiApplication.clipboard().setText(self.view.answers[-1].text)

    def _ask_params(self) -> AskParams | None:
        """How the next answer is made; None where none can be now."""
        if self._activity:
            return None
        s = self._settings
        try:
            sampling = Sampling(s.temperature, s.top_k, s.top_p, s.min_p, s.seed)
            return AskParams(s.max_tokens, Verify(s.verify), sampling, s.block, think=s.think)
        except SlipstreamError as error:
            self.notices.add(error.message, error.remedy, level="error")
            return None

    # --- what the engine tells ----------------------------------------------------

    def _show_activity(self, activity: str) -> None:
        self._activity = activity
        self.composer.set_obstacle(activity)
        self._show_state()

    def _show_progress(self, fraction: float) -> None:
        if self._activity:
            self._activity = f"{self._activity.partition(' …')[0]} … {fraction:.0%}"
            self._show_state()

    def _model_loaded(self, model: LoadedModel) -> None:
        self._loaded = model
        self.meters.set_model(model)
        self.header.set_loaded(model)
        self._show_activity("")
        self._show_used()
        if model.fallback and self._settings.backend == "gpu":
            self.notices.add(f"The model runs on the {model.backend.upper()}.", model.fallback)

    def _model_failed(self, error: SlipstreamError) -> None:
        self._loaded = None
        self._show_activity("")
        self.composer.set_obstacle("No model is loaded")
        notice = self.notices.add(error.message, error.remedy, level="error")
        notice.add_button("Try again").clicked.connect(lambda: self.loader.load(self._settings))

    def _prompt_read(self, event: Prefilled) -> None:
        self._used = event.prompt_tokens
        self._show_used()

    def _count_used(self, records: list[object]) -> None:
        self._show_state()
        totals = self.meters.model.totals
        self.line.setText(
            f"{words.rate(self.meters.model.tokens_per_s)} · "
            f"{words.length(totals.mean_accepted_length)} per round · "
            f"speed-up {words.times(self.meters.model.speedup)}"
        )

    def _answer_ended(self, answer: Answer | None) -> None:
        if answer is not None:
            self._used = answer.prompt_tokens + answer.completion_tokens
            self._show_used()
        self._show_state()

    def _show_used(self) -> None:
        self.composer.set_context(self._used, self._loaded.n_ctx if self._loaded else 0)

    def _show_state(self) -> None:
        asked = self._settings.backend
        state = state_of(self._loaded, self.meters.model, self._activity, asked)
        self.header.chip.show_state(state)

    def _devices_found(self, devices: tuple[DeviceInfo, ...]) -> None:
        self.header.set_devices(devices)

    # --- settings -----------------------------------------------------------------

    def toggle_settings(self) -> None:
        self.sheet.setVisible(self.sheet.isHidden())
        self._place_sheet()
        if self.sheet.isVisible():
            self.sheet.raise_()
            self.sheet.setFocus()
        else:
            self.composer.field.setFocus()

    def _change(self, **values: object) -> None:
        self._take(replace(self._settings, **values))  # type: ignore[arg-type]

    def _take(self, settings: Settings) -> None:
        old, self._settings = self._settings, settings
        if settings == old:
            return
        self._apply(settings)
        reload_for = ("model", "backend", "n_ctx")
        if any(getattr(old, name) != getattr(settings, name) for name in reload_for):
            self.answering.stop()
            self.loader.load(settings)
        try:
            self._save(settings)
        except SlipstreamError as error:
            self.notices.add(error.message, error.remedy, level="error")

    def _apply(self, settings: Settings) -> None:
        """Show the settings; nothing here starts anything."""
        self._look.choose(settings.theme)
        self.sheet.show_settings(settings)
        self.composer.set_send_with(settings.send_with)
        self.composer.set_think(settings.think)
        self.header.picker.set_models(self._models.models(), settings.model)
        self.honest.setVisible(settings.model == "demo")
        self.actions_.sidebar.setChecked(settings.show_sidebar)
        self.actions_.meters.setChecked(settings.show_meters)
        self._show_panels()

    def _show_panels(self) -> None:
        wide = self.width() >= ROOM_FOR_METERS
        self.meters.setVisible(self._settings.show_meters and wide)
        self.line.setVisible(self._settings.show_meters and not wide)
        self.sidebar.setVisible(self._settings.show_sidebar and self.width() >= ROOM_FOR_CHATS)
        self.header.set_narrow(not wide)

    def _enable_actions(self) -> None:
        busy = self.answering.busy
        self.actions_.stop.setEnabled(busy)
        answered = bool(self.conversation.exchanges)
        self.actions_.again.setEnabled(answered and not busy)
        self.actions_.copy_answer.setEnabled(answered)

    # --- Qt -----------------------------------------------------------------------

    def _open_menu(self) -> None:
        button = self.header.menu
        self.actions_.menu.popup(button.mapToGlobal(button.rect().bottomLeft()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_panels()
        self._place_sheet()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._geometry is not None:
            self._geometry.setValue("geometry", self.saveGeometry())
        self.hide()  # what follows may take a moment
        self.answering.stop()
        self.loader.close(2.0)
        try:
            self.bridge.close()
        except SlipstreamError:
            _log.exception("The engine did not close.")
        event.accept()

    def _place_sheet(self) -> None:
        top, width = self.header.height(), self.sheet.width()
        left = self.page.width() - width
        self.sheet.setGeometry(left, top, width, self.page.height() - top)

    def _restore_geometry(self) -> None:
        self.resize(1280, 800)
        if self._geometry is not None and (saved := self._geometry.value("geometry")):
            self.restoreGeometry(saved)
