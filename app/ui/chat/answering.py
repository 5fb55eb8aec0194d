"""Questions to the engine, and its events to the answers they belong to.

One answer at a time is wanted: a new question stops the one that runs. Events carry
their request, so that what still comes of a stopped answer goes where it belongs.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.engine import Answer, AskParams, Prefilled, RoundRecord
from app.errors import SlipstreamError
from app.ui.bridge import EngineBridge
from app.ui.chat.conversation import Conversation, Exchange
from app.ui.chat.message import AnswerView
from app.ui.chat.view import ChatView


@dataclass(frozen=True, slots=True)
class _Target:
    conversation: Conversation
    exchange: Exchange
    view: AnswerView


class Answering(QObject):
    busy_changed = Signal(bool)
    began = Signal()
    rounds_came = Signal(list)  # RoundRecords of the answer that runs
    prompt_read = Signal(object)  # Prefilled
    ended = Signal(object)  # Answer, or None where it failed

    def __init__(self, bridge: EngineBridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._targets: dict[int, _Target] = {}
        self._running: int | None = None
        bridge.prefilled.connect(self._prefilled)
        bridge.decoded.connect(self._decoded)
        bridge.finished.connect(self._finished)
        bridge.failed.connect(self._failed)

    @property
    def busy(self) -> bool:
        return self._running is not None

    def ask(
        self, conversation: Conversation, view: ChatView, question: str, params: AskParams
    ) -> None:
        view.add_question(question)
        conversation.exchanges.append(Exchange(question))
        self._start(conversation, view, params)

    def again(self, conversation: Conversation, view: ChatView, params: AskParams) -> None:
        """Make the last answer anew, in its place."""
        last = conversation.exchanges[-1]
        conversation.exchanges[-1] = Exchange(last.question)
        self._targets = {r: t for r, t in self._targets.items() if t.exchange is not last}
        view.drop_answer()
        self._start(conversation, view, params)

    def stop(self) -> None:
        if self._running is not None:
            self._bridge.cancel(self._running)

    def _start(self, conversation: Conversation, view: ChatView, params: AskParams) -> None:
        self.stop()
        answer = view.add_answer()
        request = self._bridge.ask(conversation.messages(), params)
        self._targets[request] = _Target(conversation, conversation.exchanges[-1], answer)
        self._running = request
        self.began.emit()
        self.busy_changed.emit(True)

    def _prefilled(self, request: int, event: Prefilled) -> None:
        if request == self._running:
            self.prompt_read.emit(event)

    def _decoded(self, request: int, text: str, reasoning: str, rounds: list[RoundRecord]) -> None:
        if target := self._targets.get(request):
            target.exchange.text += text
            target.exchange.reasoning += reasoning
            target.view.add(text, reasoning)
        if request == self._running:
            self.rounds_came.emit(rounds)

    def _finished(self, request: int, answer: Answer) -> None:
        if target := self._targets.pop(request, None):
            target.exchange.answer = answer
            target.view.finish(answer)
        self._end(request, answer)

    def _failed(self, request: int, error: SlipstreamError) -> None:
        if target := self._targets.pop(request, None):
            target.view.fail(error)
        self._end(request, None)

    def _end(self, request: int, answer: Answer | None) -> None:
        if request == self._running:
            self._running = None
            self.ended.emit(answer)
            self.busy_changed.emit(False)
