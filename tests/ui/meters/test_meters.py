"""Meters show the counters, nothing else, and not too often."""

from __future__ import annotations

import math
import re

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.engine import Answer, FinishReason, RoundRecord, RoundTotals, WidthReason
from app.ui.look import words
from app.ui.look.theme import Theme
from app.ui.meters.model import STRIP, MeterModel
from app.ui.meters.painted import BlockStrip, Painted
from app.ui.meters.panel import MeterPanel


def record(accepted: int, drafted: int = 7, ms: float = 10.0) -> RoundRecord:
    words_ = tuple(f" w{i}" for i in range(drafted))
    emitted = (*words_[:accepted], " own")
    ids = tuple(range(accepted + 1))
    return RoundRecord(words_, accepted, emitted, ids, ms / 4, ms / 2, ms / 4)


def answer(**changes: object) -> Answer:
    values: dict[str, object] = {
        "text": "t",
        "reasoning": "",
        "token_ids": (1, 2, 3),
        "finish_reason": FinishReason.STOP,
        "prompt_tokens": 9,
        "reused": 4,
        "totals": RoundTotals(
            rounds=1,
            drafted=7,
            accepted=1,
            draft_ms=25.0,
            verify_ms=50.0,
            host_ms=25.0,
            total_ms=100.0,
            accepted_per_round=(1,),
        ),
        "plain_tokens_per_s": 40.0,
        "prefill_ms": 5.0,
        "backend": "cpu",
        "device": "CPU",
        "seed": None,
    }
    return Answer(**{**values, **changes})  # type: ignore[arg-type]


def test_figures_are_those_of_the_counters() -> None:
    model = MeterModel(plain_tokens_per_s=100.0, block=8)
    model.add([record(5), record(2), record(0)])
    assert model.totals.rounds == 3
    assert model.totals.mean_accepted_length == pytest.approx(10 / 3)
    assert model.tokens_per_s == pytest.approx(10 / 0.030)
    assert model.speedup == pytest.approx(10 / 3)
    assert model.round_ms == pytest.approx((2.5, 5.0, 2.5))
    assert words.block(len(model.last[-1].drafted) + 1, 8, WidthReason.WHOLE) == "8 of 8"
    assert model.rates[-1] == pytest.approx(10 / 0.030)
    model.begin()
    assert model.tokens_per_s is None
    assert model.plain_tokens_per_s == 100.0


def test_a_round_without_time_or_draft_gives_no_nonsense() -> None:
    model = MeterModel()
    model.add([record(0, drafted=0, ms=0.0)])
    assert model.tokens_per_s is None
    assert model.speedup is None
    assert model.totals.acceptance_at == []
    assert not model.rates


@pytest.mark.parametrize("value", [None, math.inf, -math.inf, math.nan, 0.0, -3.0])
def test_what_is_no_measure_is_not_shown(value: float | None) -> None:
    assert words.rate(value) == words.UNKNOWN
    assert words.times(value) == words.UNKNOWN


def test_below_one_is_said() -> None:
    assert words.times(0.47) == "×0.47"
    assert words.times(2.44) == "×2.4"
    told = words.details(answer())
    assert "×0.50" in told
    assert "Drafting cost more here than it saved." in told
    assert "5 tokens read in 5.0 ms, 4 reused" in told


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"finish_reason": FinishReason.LENGTH}, "Stopped at the token limit."),
        (
            {"finish_reason": FinishReason.LENGTH, "text": "", "reasoning": "hm"},
            "Stopped at the token limit while thinking.",
        ),
        ({"finish_reason": FinishReason.CONTEXT}, "Stopped because the context is full."),
        ({"finish_reason": FinishReason.CANCELLED}, "Stopped by you."),
        ({"text": ""}, "The model ended its answer without text."),
        ({}, ""),
    ],
)
def test_why_an_answer_ended(changes: dict[str, object], note: str) -> None:
    assert words.finish_note(answer(**changes)) == note


def test_the_strip_shows_each_token_with_its_sign(qtbot: QtBot, look: Theme) -> None:
    strip = BlockStrip(2)
    qtbot.addWidget(strip)
    strip.show_records([record(9, drafted=15), record(2), record(0, drafted=3)])
    assert [sign for sign, _ in strip.cells(0)] == ["replaced", *["rejected"] * 3]
    assert strip.cells(1)[:3] == [("accepted", " w0"), ("accepted", " w1"), ("replaced", " own")]
    assert strip.accessibleDescription().startswith("0 of 3 accepted, then “ own”; 2 of 7")


def test_the_panel_shows_the_model(qtbot: QtBot, look: Theme) -> None:
    panel = MeterPanel()
    qtbot.addWidget(panel)
    panel.show()
    assert panel.speedup.accessibleName() == "Speed-up over plain decoding: not measured yet"
    panel.set_plain(100.0)
    panel.add([record(5), record(2), record(0)])
    panel.refresh()
    assert panel.rate.text() == "333 tok/s"
    assert panel.speedup.text() == "×3.3"
    assert panel.accepted.text() == "3.3"
    assert panel.round.text() == "10.0 ms"
    assert panel.plain.text() == "plain decoding 100 tok/s"
    assert panel.bars.accessibleDescription().startswith("1: 67%, 2: 67%, 3: 33%")
    panel.add([record(1)] * (STRIP + 5))
    assert len(panel.model.last) == STRIP


def test_every_meter_says_what_it_shows(qtbot: QtBot, look: Theme) -> None:
    panel = MeterPanel()
    qtbot.addWidget(panel)
    panel.add([record(3)])
    panel.refresh()
    for meter in panel.findChildren(Painted):
        assert meter.accessibleName()
        assert meter.accessibleDescription()
    for label in panel.findChildren(QLabel):
        assert not re.search(r"\b(inf|nan|-\d)", label.text())


def test_meters_are_painted_at_most_fifteen_times_a_second(qtbot: QtBot, look: Theme) -> None:
    panel = MeterPanel()
    qtbot.addWidget(panel)
    panel.resize(panel.width(), 800)
    panel.show()
    qtbot.waitExposed(panel)
    qtbot.wait(100)
    before = panel.strip.painted
    for _ in range(50):
        panel.add([record(3)])
        qtbot.wait(10)
    assert 2 <= panel.strip.painted - before <= 15


def test_a_hidden_panel_is_not_worked_on(qtbot: QtBot, look: Theme) -> None:
    panel = MeterPanel()
    qtbot.addWidget(panel)
    panel.add([record(3)])
    qtbot.wait(120)
    assert panel.rate.text() == "—"
    panel.show()  # and is up to date as soon as it is seen
    assert panel.rate.text() == "400 tok/s"
