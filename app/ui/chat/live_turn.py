"""An answer that is to come, or comes: what comes of it goes into its turn, and is told on."""

from __future__ import annotations

import time
from dataclasses import dataclass

from PySide6.QtCore import QElapsedTimer, QObject, Signal

from app.conversation import Conversation, End, Turn
from app.engine import (
    Answer,
    AskParams,
    Figures,
    FinishReason,
    Prefilled,
    RoundRecord,
    Verify,
)
from app.errors import SlipstreamError
from app.ui.bridge import Reply


@dataclass(frozen=True, slots=True)
class Maker:
    """Who makes an answer; `tokens_per_s` is its plain rate when it was loaded, if known."""

    name: str
    fallback: str = ""
    tokens_per_s: float | None = None


def goes_on(turn: Turn) -> bool:
    """Whether an answer broke off, or ended at the token limit: there may be more of it."""
    figures = turn.figures
    limited = isinstance(figures, Figures) and figures.finish_reason is FinishReason.LENGTH
    return turn.continues or (limited and turn.said and turn.end is End.DONE)


class LiveTurn(QObject):
    """It outlives no reply: however the answer ends, `ended` comes once."""

    began = Signal()
    grew = Signal(str, str)  # text and reasoning that are new in the turn
    ended = Signal()

    def __init__(
        self,
        conversation: Conversation,
        turn: Turn,
        params: AskParams,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.conversation, self.turn, self.params = conversation, turn, params
        self.ready = False  # its question is kept
        self.behind = False  # it had to wait for another answer, or for a model
        self._reply: Reply | None = None
        self._why = End.COMING  # why it was stopped, if it was
        self._over = False
        self._maker = Maker("")
        self._waiting = QElapsedTimer()
        self._waiting.start()
        # What there was before, where it is gone on with.
        self._text, self._reasoning = turn.text, turn.reasoning
        self._figures = turn.figures if isinstance(turn.figures, Figures) else None
        self._thought_ms = turn.thought_ms
        self._asked_at, self._thinking_at = 0.0, 0.0  # 0: not now
        self._first_ms = 0.0
        self._waited_ms = 0.0
        turn.end, turn.error = End.COMING, None

    @property
    def waiting(self) -> bool:
        return self._reply is None

    @property
    def reply(self) -> Reply | None:
        return self._reply

    def begin(self, reply: Reply, maker: Maker) -> None:
        """Its turn has come."""
        self._reply, self._maker = reply, maker
        self._waited_ms = float(self._waiting.elapsed()) if self.behind else 0.0
        self._asked_at = time.monotonic()
        reply.prefilled.connect(self._prompt_read)
        reply.decoded.connect(self._grow)
        reply.finished.connect(self._finish)
        reply.failed.connect(self._fail)
        self.began.emit()

    def stop(self, why: End) -> None:
        """The first reason counts."""
        self._why = self._why or why
        if self._reply is not None:
            self._reply.cancel()
        else:
            self._end(self._why)

    def answer_now(self) -> None:
        """Where it thinks, it is to think no more."""
        if self._reply is not None:
            self._reply.answer_now()

    def _prompt_read(self, event: Prefilled) -> None:
        self.turn.context = event.prompt_tokens

    def _grow(self, text: str, reasoning: str, rounds: list[RoundRecord]) -> None:
        first = 0
        if not self._first_ms:  # the token of prefill belongs to no round
            self._first_ms, first = max(1.0, self._ms_since(self._asked_at)), 1
        self.turn.text += text
        self.turn.reasoning += reasoning
        if reasoning and not self.turn.text:
            self._thinking_at = self._thinking_at or self._at
            self.turn.thought_ms = self._thought_ms + round(self._ms_since(self._thinking_at))
        elif text and self._thinking_at:
            self.turn.thought_ms = self._thought_ms + round(self._ms_since(self._thinking_at))
            self._thinking_at = 0.0
        self.turn.context += first + sum(len(r.token_ids) for r in rounds)
        self.grew.emit(text, reasoning)

    def _finish(self, answer: Answer) -> None:
        turn = self.turn
        turn.text = self._text + answer.text
        turn.reasoning = self._reasoning + answer.reasoning
        figures = Figures.of(
            answer,
            model=self._maker.name,
            first_token_ms=self._first_ms,
            wall_ms=self._ms_since(self._asked_at),
            waited_ms=self._waited_ms,
            fallback=self._maker.fallback,
            loaded_tokens_per_s=self._maker.tokens_per_s,
            temperature=self._temperature(),
        )
        turn.figures = self._figures.then(figures) if self._figures else figures
        if answer.prompt_tokens:
            turn.context = answer.prompt_tokens + answer.completion_tokens
        match answer.finish_reason:
            case FinishReason.CANCELLED:
                self._end(self._why or End.CLOSED)
            case FinishReason.LOOP:
                self._end(End.LOOPED)
            case _:
                self._end(End.DONE)

    @property
    def _at(self) -> float:
        """When what is told came about, and not when the window came to hear of it."""
        return self._reply.at if self._reply else 0.0

    def _ms_since(self, before: float) -> float:
        return (self._at - before) * 1000

    def _temperature(self) -> float:
        greedy = self.params.verify is Verify.GREEDY
        return 0.0 if greedy else self.params.sampling.temperature

    def _fail(self, error: SlipstreamError) -> None:
        self.turn.error = error
        self._end(End.FAILED)

    def _end(self, why: End) -> None:
        if self._over:
            return
        self._over = True
        self.turn.end = why
        self.ended.emit()
        self.deleteLater()
