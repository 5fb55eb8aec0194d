"""The answers that come and that wait: one after the other, of whatever chat.

An answer waits until those before it have ended, its question is kept, and a model is
there.
"""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.conversation import Conversation, End
from app.engine import LoadedModel, Plain
from app.ui.bridge import EngineBridge
from app.ui.chat.live_turn import LiveTurn, Maker


class Answers(QObject):
    began = Signal(object)  # LiveTurn: its turn has come
    ended = Signal(object)  # LiveTurn
    changed = Signal()

    def __init__(self, bridge: EngineBridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._queue: list[LiveTurn] = []  # the first of them may run
        self._maker: Maker | None = None  # nobody: they wait
        self._loaded_rate: float | None = None  # of plain decoding
        bridge.model_changed.connect(lambda _: self._set_rate(Plain()))
        bridge.plain_measured.connect(self._set_rate)

    @property
    def all(self) -> tuple[LiveTurn, ...]:
        return tuple(self._queue)

    @property
    def running(self) -> LiveTurn | None:
        return next((live for live in self._queue if not live.waiting), None)

    def of(self, chat: str) -> list[LiveTurn]:
        """Those of a chat, the one that runs first."""
        return [live for live in self._queue if live.conversation.id == chat]

    def before(self, live: LiveTurn) -> int:
        """How many come first."""
        return self._queue.index(live)

    def add(self, live: LiveTurn) -> None:
        live.ended.connect(lambda: self._ended(live))
        live.behind = bool(self._queue) or self._maker is None
        self._queue.append(live)
        self.changed.emit()

    def set_ready(self, live: LiveTurn) -> None:
        live.ready = True
        self._go_on()

    def set_model(self, model: LoadedModel | None, title: str = "") -> None:
        """Who answers, if anybody does, and what it is called here."""
        self._maker = Maker(title or model.name, model.fallback) if model else None
        for live in self._queue if self._maker is None else ():
            live.behind = True
        self._go_on()

    def stop(self, chat: str, why: End) -> None:
        """The answer of a chat that runs; where none does, those of it that wait."""
        of_chat = self.of(chat)
        for live in [one for one in of_chat if not one.waiting] or of_chat:
            live.stop(why)

    def stop_running(self, why: End) -> None:
        if (live := self.running) is not None:
            live.stop(why)

    def stop_all(self, why: End) -> None:
        for live in reversed(self._queue.copy()):  # so that none begins in between
            live.stop(why)

    def _set_rate(self, plain: Plain) -> None:
        self._loaded_rate = None if plain.uneven else plain.tokens_per_s

    def _ended(self, live: LiveTurn) -> None:
        self._queue.remove(live)
        self.ended.emit(live)
        self.changed.emit()
        self._go_on()

    def _go_on(self) -> None:
        if not self._queue or not self._maker:
            return
        live = self._queue[0]
        if live.waiting and live.ready:
            chat: Conversation = live.conversation
            reply = self._bridge.ask(chat.messages(live.turn), live.params)
            live.begin(reply, replace(self._maker, tokens_per_s=self._loaded_rate))
            self.began.emit(live)
            self.changed.emit()
