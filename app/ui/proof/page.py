"""Two answers beside each other in the place of the chat, and what comes of the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.conversation import ChatMessage
from app.engine import AskParams, Figures, RoundRecord, Verify
from app.errors import SlipstreamError
from app.proof import Proof, Subject
from app.ui.bridge import EngineBridge
from app.ui.look import theme, words
from app.ui.look.column import edge
from app.ui.look.controls import Elided
from app.ui.look.flow import Flow
from app.ui.look.icons import IconButton
from app.ui.look.labels import note
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space
from app.ui.proof.lane import Lane, mark_difference
from app.ui.proof.prover import DRAFTED, PLAIN, Prover
from app.ui.proof.replay import Replay

_SIDE_BY_SIDE: Final = 520
"""Width in px from which on the two stand beside each other."""


class ProofPage(QWidget):
    """It shows one proof or one replay at a time."""

    closed = Signal()
    written = Signal(object)  # Path of a record
    failed = Signal(object)  # SlipstreamError: a record that cannot be written
    link_chosen = Signal(str)
    wrap_chosen = Signal(bool)  # of long lines of code

    def __init__(self, bridge: EngineBridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._prover: Prover | None = None
        self._replay: Replay | None = None
        self._proof: Proof | None = None
        self._differ = False
        self._totals = [(0, 0.0), (0, 0.0)]  # tokens and ms of each run
        self._title = QLabel()
        self._title.setFont(theme.font(Size.HEADINGS[1], QFont.Weight.DemiBold))
        self._title.setMinimumWidth(1)
        self._question = Elided()
        self._question.setProperty("kind", "muted")
        self._question.setFont(theme.font(Size.CONTROL))
        close = IconButton("close", "Back to the chat (Esc)")
        close.clicked.connect(self.closed)
        self._title.setWordWrap(True)
        head = QHBoxLayout()
        head.addWidget(self._title, 1)
        head.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)
        self.lanes = (Lane("Without drafting"), Lane("With drafting"))
        self._lanes = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._lanes.setSpacing(Space.M)
        for lane in self.lanes:
            self._lanes.addWidget(lane, 1)
            lane.written.connect(self._mark)
            lane.link_chosen.connect(self.link_chosen)
            lane.wrap_chosen.connect(self.wrap_chosen)
        self.verdict = QLabel()
        self.verdict.setFont(theme.font(Size.HEADINGS[2], QFont.Weight.DemiBold))
        self.verdict.setWordWrap(True)
        self.verdict.setTextFormat(Qt.TextFormat.PlainText)  # it quotes what a model wrote
        self.about = note("")
        self.stop_button = self._button("stop", "Stop")
        self.again_button = self._button("again", "Once more")
        self.save_button = self._button("arrow-down", "Save the record …")
        self.stop_button.clicked.connect(self.stop)
        self.again_button.clicked.connect(self._again)
        self.save_button.clicked.connect(self._choose_file)
        self._buttons = QWidget()
        buttons = Flow(self._buttons, Space.S)
        for button in (self.stop_button, self.again_button, self.save_button):
            buttons.addWidget(button)
        page = QWidget()
        page.setObjectName("scrolled")
        scrolled = QVBoxLayout(page)
        scrolled.setContentsMargins(0, 0, 0, 0)
        scrolled.setSpacing(Space.S)
        scrolled.addWidget(self._question)
        scrolled.addLayout(self._lanes, 1)
        for widget in (self.verdict, self.about, self._buttons):
            scrolled.addWidget(widget)
        self._area = area = QScrollArea()  # a small window has no room for all of it
        area.setAccessibleName(tr("Both answers"))
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(page)
        self._column = column = QVBoxLayout(self)
        column.setSpacing(Space.S)
        column.addLayout(head)
        column.addWidget(area, 1)
        self._start = self.stop
        self.hide()

    @property
    def busy(self) -> bool:
        """Whether the engine works for it."""
        return self._prover is not None

    @property
    def proof(self) -> Proof | None:
        """What was proved, if it is."""
        return self._proof

    # --- what it can show ---------------------------------------------------------

    def prove(self, chat: tuple[ChatMessage, ...], params: AskParams, subject: Subject) -> None:
        """Answer `chat` without drafter and with it."""
        self._start = lambda: self.prove(chat, params, subject)
        self._begin("With and without drafting", chat[-1].content)
        for lane in self.lanes:
            lane.clear("waits for its turn")
        self._prover = prover = Prover(self._bridge, chat, params, subject, self)
        prover.began.connect(lambda which: self.lanes[which].clear("reads the prompt …"))
        prover.grew.connect(self._grow)
        prover.controlling.connect(lambda: self._say("They differ: the target alone is asked …"))
        prover.proved.connect(self._show_proof)
        prover.failed.connect(self._show_failure)
        prover.stopped.connect(lambda: self._end("Stopped before there was anything to compare."))
        prover.start()

    def replay(self, question: str, reasoning: str, text: str, figures: Figures) -> None:
        """Show a finished answer once more, at both speeds that were measured beside it."""
        self._start = lambda: self.replay(question, reasoning, text, figures)
        self._begin("Replay at the measured speeds", question)
        for lane in self.lanes:
            lane.clear("")
        self._replay = replay = Replay(reasoning + text, figures, self)

        def grow(which: int, new: str, tokens: int, milliseconds: float) -> None:
            lane = self.lanes[which]
            thought = max(0, len(reasoning) - len(lane.reasoning))
            lane.add(new[thought:], new[:thought])
            lane.show_figures(tokens, milliseconds)

        def over() -> None:
            took = [words.duration(replay.duration_ms(which)) for which in (DRAFTED, PLAIN)]
            self._end(
                f"{figures.speedup.times:.1f} × as fast with drafting",
                f"{took[0]} with drafting, {took[1]} without: as measured when it was answered.",
            )

        replay.grew.connect(grow)
        replay.over.connect(over)
        replay.start()

    def stop(self) -> None:
        """What comes until it has stopped is still told."""
        if self._prover is not None:
            self._prover.stop()
        elif self._replay is not None:
            self._replay.stop()
            self._end("Stopped.")

    def leave(self) -> None:
        """Stop, and tell nothing more."""
        if self._prover is not None:
            self._prover.blockSignals(True)
        self.stop()
        self._prover = self._replay = None

    # --- Qt -----------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        direction, wide = QBoxLayout.Direction, event.size().width() >= _SIDE_BY_SIDE
        self._lanes.setDirection(direction.LeftToRight if wide else direction.TopToBottom)
        at = min(Space.XL, edge(event.size().width()))  # the edges of the chat, where it is narrow
        self._column.setContentsMargins(at, Space.L, at, Space.S)

    # --- own ----------------------------------------------------------------------

    def _begin(self, title: str, question: str) -> None:
        self.leave()
        self._proof, self._differ = None, False
        self._totals = [(0, 0.0), (0, 0.0)]
        self._title.setText(tr(title))
        self._question.set_text(" ".join(question.split()))
        self._say("")
        self.stop_button.show()
        if self.again_button.hasFocus():  # which else goes to anything
            self.stop_button.setFocus()
        self.again_button.hide()
        self.save_button.hide()
        self.show()

    def _grow(self, which: int, text: str, reasoning: str, rounds: Sequence[RoundRecord]) -> None:
        tokens, spent = self._totals[which]
        tokens = max(tokens, 1) + sum(len(r.emitted) for r in rounds)  # and that of prefill
        spent += sum(r.total_ms for r in rounds)
        self._totals[which] = tokens, spent
        self.lanes[which].add(text, reasoning)
        self.lanes[which].show_figures(tokens, spent)

    def _show_proof(self, proof: Proof) -> None:
        assert self._prover is not None
        prover, at = self._prover, proof.at
        spent = [words.duration(run.decode_ms) for run in (proof.plain, proof.drafted)]
        times = f"{spent[0]} without drafting, {spent[1]} with it"
        if (found := proof.speedup) is not None:
            times += f": {words.times(found.times)}" if found.times else ""
            times += f". Speed-up {words.speedup(found)}" if found.why else ""
        self._proof = proof
        for lane, run in zip(self.lanes, (proof.plain, proof.drafted), strict=True):
            lane.show_figures(len(run.token_ids), run.decode_ms)
        if at is None:
            stopped = " until it was stopped" if proof.drafted.stopped else ""
            self._end(f"Identical, {words.tokens(proof.same)}{stopped}", f"{times}.")
            return
        first, other = (
            _quoted(prover.text_of(run.token_ids[at]) if at < len(run.token_ids) else "")
            for run in (proof.plain, proof.drafted)
        )
        self._differ = True
        self._end(
            f"{words.tokens(at)} identical, then {first} without drafting and {other} with it",
            f"{_explained(proof)} {times}.",
        )

    def _mark(self) -> None:
        if self._differ and all(lane.rendered for lane in self.lanes):
            mark_difference(*self.lanes)

    def _show_failure(self, error: SlipstreamError) -> None:
        self._end(error.message, error.remedy)

    def _end(self, verdict: str, about: str = "") -> None:
        self._prover = self._replay = None
        for lane in self.lanes:
            lane.finish()
        self._say(verdict, about)
        self.again_button.show()
        if self.stop_button.hasFocus():
            self.again_button.setFocus()
        self.stop_button.hide()
        self.save_button.setVisible(self._proof is not None)
        QTimer.singleShot(0, self, self._show_end)

    def _show_end(self) -> None:
        self._area.ensureWidgetVisible(self._buttons, 0, 0)

    def _say(self, verdict: str, about: str = "") -> None:
        self.verdict.setText(tr(verdict))
        self.about.setText(tr(about))

    def _again(self) -> None:
        self._start()

    def _choose_file(self) -> None:
        what = "Record of a proof (*.json)"
        path, _ = QFileDialog.getSaveFileName(self, "Save the record", "proof.json", what)
        if path:
            self.save(Path(path))

    def save(self, path: Path) -> None:
        """Write what was proved, for `slipstream selftest --record`."""
        if self._proof is None:
            return
        try:
            self._proof.write(path)
        except SlipstreamError as error:
            self.failed.emit(error)
        else:
            self.written.emit(path)

    def _button(self, icon: str, text: str) -> IconButton:
        return IconButton(icon, text, kind="outline", text=text, size=14)


def _quoted(token: str) -> str:
    return f"“{token.replace(chr(10), '⏎')}”" if token else "the end"


def _explained(proof: Proof) -> str:
    """The control run's word on a difference."""
    control = proof.control
    if control is None:
        ends = min(len(proof.plain.token_ids), len(proof.drafted.token_ids))
        if proof.at == ends:
            return "One of them ends there: nothing explains that, please report it."
        if proof.params.verify is not Verify.GREEDY:
            return "Sampled text has no control run: prove it with Greedy."
        return "The control run was stopped: whether that is a fault is not known."
    if control.spread is None:
        return (
            "No fault: the model alone, reading many tokens at once, leaves its own answer before "
            "that place."
        )
    if control.explains:
        return (
            "No fault: the model alone wavers there, its two best tokens are "
            f"{control.gap:.2g} apart and rounding moves them by {control.spread:.2g}."
        )
    return (
        f"A fault: the model alone is sure there ({control.gap:.2g} apart, rounding moves by "
        f"{control.spread:.2g}). Save the record and report it."
    )
