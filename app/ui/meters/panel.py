"""The meter panel: quiet until looked at, and not worked on where it is not seen."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.ui.look import theme, words
from app.ui.look.flow import Flow
from app.ui.look.icons import IconButton
from app.ui.look.labels import Line, note
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space
from app.ui.meters.model import Meters
from app.ui.meters.painted import BlockStrip, Legend, PositionBars, RoundBar, Sparkline
from app.ui.meters.verdict import spread, verdict

WIDTH: Final = 288
_EDGE: Final = 20
_REPLAY: Final = "Show the newest answer once more at both measured speeds"
_ROWS: Final = 6


class MeterPanel(QScrollArea):
    def __init__(self, meters: Meters, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Meters"))
        self.setFixedWidth(WIDTH)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._meters = meters
        meters.changed.connect(self._refresh_if_seen)

        self.speedup = QLabel()
        self.speedup.setFont(theme.font(Size.FIGURE, QFont.Weight.DemiBold))
        self.verdict = QLabel()
        self.verdict.setFont(theme.font(Size.BODY, QFont.Weight.Medium))
        self.verdict.setWordWrap(True)
        self.rate = _value()
        self.plain = note("")
        self.spark = Sparkline()
        self.accepted = _value()
        self.bars = PositionBars()
        self.strip = BlockStrip(_ROWS)
        self.round = _value()
        self.parts = RoundBar()
        self.block = _value()
        self.exact = _value()
        self._exactness = _pair(
            _heading("Drafted text", "Whether it is plain text to the last bit, as probed."),
            self.exact,
        )
        self.device = note("")
        self.memory = note("")

        self._first = _column(self.speedup, self.verdict, spacing=0)
        self._figures = _column(
            _pair(
                _heading("Tokens a second", "How fast the answer comes, once its prompt is read."),
                self.rate,
            ),
            self.spark,
            self.plain,
        )
        self._blocks = _column(
            _heading(
                "Last guesses", "A row is one step, newest on top: which guessed tokens held."
            ),
            self.strip,
            Legend(),
        )
        self._more = _column(
            _pair(
                _heading(
                    "Tokens per step",
                    "Mean accepted length: tokens that one step gives. Without drafting it is 1. "
                    "The bars tell how often the 1st, 2nd, 3rd … guessed token held.",
                ),
                self.accepted,
            ),
            self.bars,
            Space.S,
            _pair(
                _heading("Guess length", "Tokens checked at once, as many as pay for this text."),
                self.block,
            ),
            Space.S,
            _pair(
                _heading(
                    "Time per step",
                    "Draft: guessing. Verify: the model checks the guess. Host: all else.",
                ),
                self.round,
            ),
            self.parts,
            Space.S,
            self._exactness,
            Space.S,
            _heading("Device", "Where the model runs, and how much memory that takes."),
            self.device,
            self.memory,
        )
        self.details = IconButton(
            "chevron-down", "Hide what the speed is made of", kind="fold", text="Details", size=14
        )
        self.details.setCheckable(True)
        self.details.setChecked(True)
        self.details.toggled.connect(self._fold)

        self.prove = IconButton(
            "check",
            "Answer the newest question without drafting and with it, and compare",
            kind="outline",
            text="Prove it",
            size=14,
        )
        self.replay = IconButton(
            "forward",
            _REPLAY,
            kind="outline",
            text="Replay",
            size=14,
        )
        self._buttons = QWidget()
        buttons = Flow(self._buttons, Space.S)
        buttons.addWidget(self.prove)
        buttons.addWidget(self.replay)

        page = QWidget()
        page.setProperty("kind", "panel")
        self.setProperty("kind", "panel")
        self._column = column = QVBoxLayout(page)
        column.setContentsMargins(_EDGE, Space.L, _EDGE, Space.L)
        column.setSpacing(Space.M)
        parts = (self._first, self._buttons, self._figures, self._blocks, self.details, self._more)
        for part in parts:
            column.addWidget(part)
        column.setAlignment(self.details, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)
        self.setWidget(page)
        self.offer(prove=False, replay=False)
        self.refresh()

    def offer(self, *, prove: bool, replay: bool) -> None:
        """Which of the two can be done for the chat on view.

        They are seen where one can, and while an answer is drafted, so that nothing moves when
        it ends.
        """
        self.prove.setEnabled(prove)
        self.replay.setEnabled(replay)
        self._show_buttons()

    def refresh(self) -> None:
        meters, counters, totals = self._meters, self._meters.counters, self._meters.counters.totals
        said, found = verdict(meters), meters.speedup
        _tell(self.speedup, said.figure, "Speed-up over plain decoding", words.speedup(found))
        self.speedup.setVisible(bool(said.figure))
        _tell(self.verdict, said.words, "What drafting does", str(said))
        begun = bool(totals.rounds)  # before that, nothing but dashes could be shown
        for part in (self._figures, self.details):
            part.setVisible(begun)
        # Of an answer as it was, none are kept; while nothing is drafted there are none.
        self._blocks.setVisible(any(record.drafted for record in counters.last))
        ended = counters.over
        told = any(share is not None for share in counters.shares)
        self.bars.setVisible(told or (bool(totals.drafted_at) and not ended))
        self.spark.setVisible(bool(counters.rates))
        self._more.setVisible(begun and self.details.isChecked())
        rate = counters.tokens_per_s
        _tell(self.rate, "" if rate is None else words.rate(rate), "Tokens per second")
        plain = found.plain_tokens_per_s
        beside = f"without drafting{' ' if plain else ': '}{words.rate(plain, ended=ended)}"
        about = "; ".join(filter(None, (beside, spread(meters))))
        _tell(self.plain, about, "Plain decoding")
        self.spark.show_rates(counters.rates, plain)
        mean = totals.mean_accepted_length
        _tell(self.accepted, "—" if mean is None else words.length(mean), "Mean accepted length")
        self.bars.show_shares(counters.shares, meters.block - 1)
        self.strip.show_records(counters.last)
        parts = words.phases(counters.round_ms, bool(totals.drafted))
        mean_ms = words.milliseconds(sum(part for _, part in parts)) if begun else "—"
        _tell(self.round, mean_ms, "Time of a round")
        self.parts.show_parts(parts)
        of = f"— of {meters.block}"
        if ended and totals.rounds:
            of = f"{round(totals.drafted / totals.rounds + 1, 1):g} on average"
        elif counters.last:  # the anchor and what was drafted
            last = counters.last[-1]
            of = words.block(len(last.drafted) + 1, meters.block, last.reason)
        _tell(self.block, of if meters.block or counters.kept else "no drafter", "Block")
        self._show_buttons()
        self._show_exact()
        self._show_device()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # The scroll bar has its room at the right edge, there or not: nothing moves with it.
        bar = self.width() - self.viewport().width()
        self._column.setContentsMargins(_EDGE, Space.L, max(0, _EDGE - bar), Space.L)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    def _show_buttons(self) -> None:
        loaded = self._meters.model
        drafts = loaded is not None and loaded.has_draft
        totals = self._meters.counters.totals
        coming = bool(totals.rounds if drafts else totals.drafted)
        possible = self.prove.isEnabled() or self.replay.isEnabled()
        self._buttons.setVisible(coming or possible)
        counters, gain = self._meters.counters, self._meters.speedup
        label = _REPLAY
        if counters.over and gain.why is not None:
            label = f"No replay. Speed-up: {words.speedup(gain)}."
        self.replay.set_label(label)

    def _show_exact(self) -> None:
        """Of the pair that is loaded: nothing tells it of what made an answer that is kept."""
        loaded = self._meters.model
        drafts = loaded is not None and loaded.has_draft
        word, meaning = words.exactness(loaded.exact if loaded and drafts else None)
        self._exactness.setVisible(drafts and self._meters.counters.kept is None)
        _tell(self.exact, word, "Drafted text", meaning)
        self.exact.setToolTip(meaning)

    def _show_device(self) -> None:
        loaded, kept = self._meters.model, self._meters.counters.kept
        if kept is not None:  # by whatever was loaded then
            by = f"{kept.model} on " if kept.model else ""
            _tell(self.device, f"{by}{kept.device}", "Device")
            _tell(self.memory, "", "Memory", words.UNMEASURED)
            return
        if loaded is None:
            _tell(self.device, "No model is loaded", "Device")
            _tell(self.memory, "", "Memory", words.UNKNOWN)
            return
        device = loaded.device
        layers = f"{loaded.layers_on_device} of {loaded.layers} layers"
        _tell(self.device, f"{device.description} · {layers}", "Device")
        memory = f"model {words.size(loaded.target_bytes + loaded.draft_bytes)}"
        used, total = device.memory_total - device.memory_free, device.memory_total
        if used > 0:  # some devices tell their size only
            memory += f" · {words.size(used)} of {words.size(total)} in use"
        elif total:
            memory += f" · {words.size(total)} in all"
        _tell(self.memory, memory, "Memory")

    def _fold(self, shown: bool) -> None:
        self._more.setVisible(shown)
        self.details.set_icon("chevron-down" if shown else "chevron-right")
        label = "Hide what the speed is made of" if shown else "Show what the speed is made of"
        self.details.set_label(label)

    def _refresh_if_seen(self) -> None:
        if self.isVisible():
            self.refresh()


def _tell(label: QLabel, text: str, name: str, spoken: str | None = None) -> None:
    label.setText(tr(text))
    label.setAccessibleName(f"{tr(name)}: {tr(text if spoken is None else spoken)}")


def _heading(text: str, help_: str) -> QLabel:
    """With its word of help under the pointer, and for a screen reader."""
    result = Line()
    result.setText(tr(text))
    result.setProperty("kind", "muted")
    result.setFont(theme.font(Size.SMALL, QFont.Weight.Medium))
    result.setToolTip(tr(help_))
    result.setAccessibleDescription(tr(help_))
    return result


def _value() -> QLabel:
    result = Line()
    result.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom)
    result.setFont(theme.font(Size.CONTROL, QFont.Weight.DemiBold))
    return result


def _column(*rows: QWidget | int, spacing: int = Space.S) -> QWidget:
    """Rows one below the other; a number is air in px."""
    result = QWidget()
    column = QVBoxLayout(result)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(spacing)
    for row in rows:
        if isinstance(row, int):
            column.addSpacing(row)
        else:
            column.addWidget(row)
    return result


def _pair(left: QWidget, right: QWidget) -> QWidget:
    """Two widgets on one line, the second at its right end."""
    result = QWidget()
    row = QHBoxLayout(result)
    row.setContentsMargins(0, 0, 0, 0)
    row.addWidget(left)
    row.addStretch(1)
    row.addWidget(right, 0, Qt.AlignmentFlag.AlignBottom)
    return result
