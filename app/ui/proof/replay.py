"""A finished answer once more, at both measured speeds. Nothing is computed anew."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal

from app.engine import Figures
from app.ui.proof.prover import DRAFTED, PLAIN

TICK_MS: Final = 40


class Replay(QObject):
    """Which tokens had come when. The text is told in as many even parts as there were tokens:
    what each token said is not kept.
    """

    grew = Signal(int, str, int, float)  # which, text that is new, tokens so far, milliseconds
    ended = Signal(int)  # which
    over = Signal()

    def __init__(self, text: str, figures: Figures, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._text, self._tokens = text, max(1, figures.completion_tokens)
        totals, plain = figures.totals, figures.speedup.plain_tokens_per_s
        assert possible(figures)
        assert plain is not None
        self._round_ms = totals.total_ms / totals.rounds
        self._plain_ms = 1000.0 / plain
        # Tokens after each round, the one of prefill before the first.
        self._after = [1]
        for accepted in totals.accepted_per_round:
            self._after.append(self._after[-1] + accepted + 1)
        self._shown = [0, 0]  # characters
        self._left = {PLAIN, DRAFTED}
        self._clock = QElapsedTimer()
        self._timer = QTimer(self, interval=TICK_MS)
        self._timer.timeout.connect(self._tick)

    def duration_ms(self, which: int) -> float:
        rounds = len(self._after) - 1
        return self._round_ms * rounds if which == DRAFTED else self._plain_ms * (self._tokens - 1)

    def start(self) -> None:
        self._clock.start()
        self._timer.start()
        self._tick()

    def stop(self) -> None:
        self._timer.stop()

    def tokens_at(self, which: int, milliseconds: float) -> int:
        """How many had come by then."""
        if which == DRAFTED:
            rounds = min(int(milliseconds / self._round_ms), len(self._after) - 1)
            return min(self._after[rounds], self._tokens)
        return min(1 + int(milliseconds / self._plain_ms), self._tokens)

    def _tick(self) -> None:
        now = float(self._clock.elapsed())
        for which in sorted(self._left):
            tokens = self.tokens_at(which, now)
            over = now >= self.duration_ms(which)
            end = len(self._text) if over else len(self._text) * tokens // self._tokens
            new = self._text[self._shown[which] : end]
            self._shown[which] = end
            self.grew.emit(which, new, tokens, min(now, self.duration_ms(which)))
            if over:
                self._left.discard(which)
                self.ended.emit(which)
        if not self._left:
            self._timer.stop()
            self.over.emit()


def possible(figures: Figures | None) -> bool:
    """Whether both speeds of an answer were measured."""
    return figures is not None and figures.speedup.times is not None
