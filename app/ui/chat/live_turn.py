"""A turn whose answer is coming: what comes of it goes into its turn, and is told on."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.conversation import Turn
from app.engine import Answer, Prefilled, RoundRecord
from app.errors import SlipstreamError
from app.ui.bridge import Reply


class LiveTurn(QObject):
    """It outlives no reply: however the answer ends, `ended` comes once."""

    grew = Signal(str, str)  # text and reasoning that are new in the turn
    ended = Signal()

    def __init__(self, reply: Reply, turn: Turn, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.turn = turn
        self._reply = reply
        self._begun = False
        reply.prefilled.connect(self._prompt_read)
        reply.decoded.connect(self._grow)
        reply.finished.connect(self._finish)
        reply.failed.connect(self._fail)

    def stop(self) -> None:
        self._reply.cancel()

    def _prompt_read(self, event: Prefilled) -> None:
        self.turn.context = event.prompt_tokens

    def _grow(self, text: str, reasoning: str, rounds: list[RoundRecord]) -> None:
        self.turn.text += text
        self.turn.reasoning += reasoning
        first = 0 if self._begun else 1  # the token of prefill belongs to no round
        self._begun = True
        self.turn.context += first + sum(len(r.token_ids) for r in rounds)
        self.grew.emit(text, reasoning)

    def _finish(self, answer: Answer) -> None:
        self.turn.text, self.turn.reasoning = answer.text, answer.reasoning  # once in memory
        self.turn.figures = answer
        self.turn.context = answer.prompt_tokens + answer.completion_tokens
        self._end()

    def _fail(self, error: SlipstreamError) -> None:
        self.turn.error = error
        self._end()

    def _end(self) -> None:
        self.ended.emit()
        self.deleteLater()
