"""Meters show the counters, nothing else, and not too often."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import replace

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.conversation import ChatMessage, End, Role, Turn
from app.engine import (
    Answer,
    AskParams,
    Figures,
    FinishReason,
    LoadedModel,
    Origin,
    Plain,
    RoundRecord,
    RoundTotals,
    Unmeasured,
    WidthReason,
)
from app.engine.fake import FAKE_CPU
from app.errors import EngineError
from app.ui.bridge import EngineBridge
from app.ui.chat.message import AnswerView
from app.ui.look import words
from app.ui.look.theme import Theme
from app.ui.meters.model import STRIP, Meters
from app.ui.meters.painted import BlockStrip, Legend, Painted
from app.ui.meters.panel import MeterPanel
from app.ui.meters.verdict import spread, verdict
from tests.ui.conftest import WaitUntil
from tests.ui.fakes import BatchEngine

HELLO = (ChatMessage(Role.USER, "Hello"),)
MODEL = LoadedModel("m", 1, 1, "F32", "cpu", FAKE_CPU, 8, 8, 4096, 4096, 8)


@pytest.fixture
def bridge(owner: QObject) -> EngineBridge:
    """Whose requests a test lets speak: nobody drains its engine."""

    result = EngineBridge(BatchEngine(), owner)
    result._timer.stop()
    return result


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
        "plain": Plain(40.0),
        "prefill_ms": 5.0,
        "backend": "cpu",
        "device": "CPU",
        "seed": None,
    }
    return Answer(**{**values, **changes})  # type: ignore[arg-type]


@pytest.fixture
def shown(owner: QObject) -> Meters:
    result = Meters(owner)
    result.set_model(MODEL)
    return result


def test_figures_are_those_of_the_counters(shown: Meters) -> None:
    shown.set_plain(Plain(100.0))
    shown.counters.add([record(5), record(2), record(0)])
    counters = shown.counters
    assert counters.totals.rounds == 3
    assert counters.totals.mean_accepted_length == pytest.approx(10 / 3)
    assert counters.tokens_per_s == pytest.approx(10 / 0.030)
    assert shown.speedup.times == pytest.approx(10 / 3)
    assert counters.round_ms == pytest.approx((2.5, 5.0, 2.5))
    assert words.block(len(counters.last[-1].drafted) + 1, 8, WidthReason.WHOLE) == "8 of 8"
    assert counters.rates[-1] == pytest.approx(10 / 0.030)


def test_a_round_without_time_or_draft_gives_no_nonsense(shown: Meters) -> None:
    shown.counters.add([record(0, drafted=0, ms=0.0)])
    assert shown.counters.tokens_per_s is None
    assert shown.speedup.times is None
    assert shown.counters.totals.acceptance_at == []
    assert not shown.counters.rates


def test_a_new_answer_is_counted_from_nothing(bridge: EngineBridge, shown: Meters) -> None:
    """What still comes of the one before is not counted for it."""
    shown.set_plain(Plain(100.0))
    first, second = (bridge.ask(HELLO, AskParams()) for _ in range(2))
    shown.follow(first)
    first.decoded.emit("", "", [record(5)])
    shown.follow(second)
    assert shown.counters.totals.rounds == 0
    first.decoded.emit("", "", [record(5)])
    second.decoded.emit("", "", [record(2)])
    assert shown.counters.totals.accepted == 2
    assert shown.plain_tokens_per_s == 100.0
    second.finished.emit(answer(plain=Plain(80.0)))
    assert shown.plain_tokens_per_s == 80.0
    third = bridge.ask(HELLO, AskParams())
    shown.follow(third)
    third.finished.emit(answer(plain=Plain(None)))  # no plain step of the same minute
    assert shown.speedup.times is None


def test_another_model_has_no_figures_yet(shown: Meters) -> None:
    shown.set_plain(Plain(100.0))
    shown.counters.add([record(5)])
    shown.set_model(None)
    assert shown.plain_tokens_per_s is None
    assert shown.counters.totals.rounds == 0
    assert shown.block == 0


@pytest.mark.parametrize("value", [None, math.inf, -math.inf, math.nan, 0.0, -3.0])
def test_what_is_no_measure_is_not_shown(value: float | None) -> None:
    assert words.rate(value) == words.UNKNOWN
    assert words.times(value) == words.UNKNOWN


def test_below_one_is_said() -> None:
    assert words.times(0.47) == "×0.47"
    assert words.times(2.44) == "×2.4"
    told = words.details(Figures.of(answer()))
    assert "×0.50" in told
    assert "Drafting cost more here than it saved." in told
    assert "5 tokens read in 5.0 ms, 4 reused" in told


@pytest.mark.parametrize(
    ("end", "reason", "text", "note"),
    [
        (End.DONE, FinishReason.LENGTH, "a", "Stopped at the token limit."),
        (End.DONE, FinishReason.LENGTH, "", "Stopped at the token limit while thinking."),
        (End.DONE, FinishReason.CONTEXT, "a", "Stopped because the context is full."),
        (End.STOPPED, FinishReason.CANCELLED, "a", "Stopped by you."),
        (End.LOOPED, FinishReason.LOOP, "a", "Stopped: it repeated itself."),
        (End.LOOPED, FinishReason.LOOP, "", "Stopped: it repeated itself while thinking."),
        (End.REPLACED, FinishReason.CANCELLED, "a", "Stopped for another answer."),
        (End.LOST, None, "a", "Interrupted: Slipstream ended without a word."),
        (End.CLOSED, None, "", "Interrupted: the window was closed while thinking."),
        (End.DONE, FinishReason.STOP, "a", ""),
        (End.COMING, None, "a", ""),
    ],
)
def test_why_an_answer_ended(end: End, reason: FinishReason | None, text: str, note: str) -> None:
    figures = Figures.of(answer(finish_reason=reason)) if reason else None
    turn = Turn(Role.ASSISTANT, "q", text, "" if text else "hm", figures, end=end)
    assert words.finish_note(turn) == note


def test_the_rate_of_decoding_stands_apart_from_the_wait_for_the_first_token() -> None:
    told = words.footer(Figures.of(answer(), first_token_ms=2_000.0))
    assert told.split(" · ")[:3] == ["3 tok", "20 tok/s", "first after 2.0 s"]


def test_an_answer_without_text_says_so() -> None:
    assert words.finish_note(Turn(Role.ASSISTANT, "q", end=End.DONE)) == (
        "The model ended its answer without text."
    )
    reading = Figures.of(answer(token_ids=(), finish_reason=FinishReason.CANCELLED))
    stopped = Turn(Role.ASSISTANT, "q", figures=reading, end=End.STOPPED)
    assert words.finish_note(stopped) == "Stopped by you while it read the prompt."
    assert words.footer(reading) == ""
    waited = Turn(Role.ASSISTANT, "q", end=End.CLOSED)
    assert words.finish_note(waited) == "Not answered: the window was closed."


def test_an_answer_that_ends_while_it_thinks_is_no_empty_bubble(qtbot: QtBot, look: Theme) -> None:
    figures = Figures.of(answer(finish_reason=FinishReason.LENGTH))
    turn = Turn(Role.ASSISTANT, "q", "", "Let me think about", figures, end=End.DONE)
    view = AnswerView(turn)
    qtbot.addWidget(view)
    view.show()
    assert view._note.isVisible()
    assert view._note.text() == "Stopped at the token limit while thinking."
    assert view._think.isVisible()
    assert not view.body.isVisible()


def test_the_strip_shows_each_token_with_its_sign(qtbot: QtBot, look: Theme) -> None:
    strip = BlockStrip(2)
    qtbot.addWidget(strip)
    strip.show_records([replace(record(2), origin=Origin.LOOKUP)])
    assert [sign for sign, _ in strip.cells(0)][:3] == ["copied", "copied", "replaced"]
    assert strip.accessibleDescription().startswith("2 of 7 from the chat accepted")
    strip.show_records([replace(record(2), origin=Origin.BOTH, agreed=1)])
    assert [sign for sign, _ in strip.cells(0)][:3] == ["accepted", "copied", "replaced"]
    assert strip.accessibleDescription().startswith("2 of 7 in part from the chat accepted")
    strip.show_records([record(9, drafted=15), record(2), record(0, drafted=3)])
    assert [sign for sign, _ in strip.cells(0)] == ["replaced", *["rejected"] * 3]
    assert strip.cells(1)[:3] == [("accepted", " w0"), ("accepted", " w1"), ("replaced", " own")]
    assert strip.accessibleDescription().startswith("0 of 3 accepted, then “ own”; 2 of 7")


@pytest.mark.parametrize(("width", "columns"), [(600, 4), (248, 2), (90, 1)])
def test_what_the_strips_cells_mean_stands_in_columns(
    qtbot: QtBot, look: Theme, width: int, columns: int
) -> None:
    legend = Legend()
    qtbot.addWidget(legend)
    legend.resize(width, 40)
    legend.show()
    places = legend.places()
    assert len({x for x, _ in places}) == columns
    assert len({y for _, y in places}) == 4 // columns
    assert legend.height() >= places[-1][1] + 12


def test_the_panel_shows_the_model(qtbot: QtBot, look: Theme, shown: Meters) -> None:
    panel = MeterPanel(shown)
    qtbot.addWidget(panel)
    panel.show()
    assert panel.speedup.accessibleName() == (
        "Speed-up over plain decoding: not measured (nothing was drafted)"
    )
    shown.set_plain(Plain(100.0))
    shown.counters.add([record(5), record(2), record(0)])
    panel.refresh()
    assert panel.rate.text() == "333 tok/s"
    assert panel.speedup.text() == "3.3 ×"
    assert panel.accepted.text() == "3.3"
    assert panel.round.text() == "10.0 ms"
    assert panel.plain.text() == "without drafting 100 tok/s"
    assert panel.verdict.text() == "faster than without drafting."
    assert panel.verdict.accessibleName().endswith(": 3.3 × faster than without drafting.")
    assert panel.bars.accessibleDescription().startswith("1: 67%, 2: 67%, 3: 33%")
    shown.counters.add([record(1)] * (STRIP + 5))
    assert len(shown.counters.last) == STRIP


def test_the_panel_says_whether_drafted_text_is_plain_text(
    qtbot: QtBot, look: Theme, owner: QObject
) -> None:
    meters = Meters(owner)
    panel = MeterPanel(meters)
    qtbot.addWidget(panel)
    panel.show()
    meters.set_exact(True)  # of a pair that is gone
    assert panel.exact.text() == "—"
    meters.set_model(MODEL)
    assert (panel.exact.text(), panel.exact.toolTip()) == ("—", words.UNKNOWN)
    for found, word in ((True, "exact"), (False, "lossless")):
        meters.set_exact(found)
        qtbot.waitUntil(lambda word=word: panel.exact.text() == word)  # type: ignore[misc]
        assert panel.exact.accessibleName().startswith("Drafted text: Drafted text is plain text")
    meters.set_model(replace(MODEL, exact=True, block=0))
    assert panel.exact.text() == "—"  # nothing is drafted


def test_nothing_is_promised_of_an_answer_that_has_ended(
    qtbot: QtBot, look: Theme, shown: Meters
) -> None:
    panel = MeterPanel(shown)
    qtbot.addWidget(panel)
    panel.show()
    shown.set_exact(True)
    shown.counters.add([record(3)] * 4)
    panel.refresh()
    assert panel.plain.text() == f"without drafting: {words.UNKNOWN}"
    assert panel.exact.isVisible()
    live = shown.counters
    live.ended = True
    panel.refresh()
    assert panel.plain.text() == f"without drafting: {words.UNMEASURED}"
    assert str(verdict(shown)) == "Drafting. How much faster was not measured."
    assert panel.exact.isVisible()  # of the pair that made it
    kept = replace(Figures.of(answer()), plain_tokens_per_s=None, device="Another")
    shown.show("t0", kept)
    panel.refresh()
    assert panel.device.text().endswith("Another")
    assert not panel.exact.isVisible()  # what is loaded now has no word on that
    said = [f"{label.text()} {label.accessibleName()}" for label in panel.findChildren(QLabel)]
    assert [told for told in said if " yet" in told and "Drafted text" not in told] == []


def test_an_answer_that_failed_has_ended(shown: Meters, bridge: EngineBridge) -> None:
    engine = bridge._engine
    assert isinstance(engine, BatchEngine)
    engine.script.error = EngineError("It fell over.", remedy="Try again.")
    shown.follow(bridge.ask(HELLO, AskParams()))
    while not shown.counters.over:
        bridge.drain()
    assert not shown.counters.reading


def step(reason: WidthReason = WidthReason.PLAIN, ms: float = 10.0) -> RoundRecord:
    return replace(record(0, drafted=0, ms=ms), reason=reason)


@pytest.mark.parametrize(
    ("records", "plain", "says"),
    [
        ([], 100.0, "Ask something: what drafting does for the answer is shown here."),
        ([record(3)], None, "Drafting. How much faster is not measured yet."),
        ([record(3)] * 3, 160.0, "2.5 × faster than without drafting."),
        ([record(3)] * 3, 90.0, "Drafting. How much faster cannot be measured on a busy machine."),
        ([record(1)] * 3, 196.0, "As fast as without drafting."),
        ([record(0)] * 3, 200.0, "Drafting costs more here than it saves, for now."),
        ([record(3), *[step()] * 8], 100.0, "Drafting paused: not worth it for this text."),
        ([step()], 100.0, "Drafting paused: not worth it for this text."),
        ([step(WidthReason.FIXED)], 100.0, "Nothing was drafted for this answer."),
    ],
)
def test_one_sentence_first(
    shown: Meters, records: list[RoundRecord], plain: float | None, says: str
) -> None:
    shown.set_plain(Plain(plain))
    shown.counters.add(records)
    assert str(verdict(shown)) == says


def test_plain_steps_of_unlike_times_are_no_measure(qtbot: QtBot, shown: Meters) -> None:
    panel = MeterPanel(shown)
    qtbot.addWidget(panel)
    panel.show()
    shown.counters.add([step(ms=ms) for ms in (9.0, 2.0, 9.0, 2.0, 9.0)])
    shown.counters.add([record(3)] * 30)
    assert shown.speedup.why is Unmeasured.UNEVEN
    assert spread(shown) == ""
    panel.refresh()
    assert not panel.speedup.isVisible()
    assert "×" not in panel.plain.text()
    assert "2" not in panel.plain.text()  # nor the rate that is none
    assert panel.speedup.accessibleName().endswith(
        "plain steps were held up, as beside other programs)"
    )
    shown.counters.ended = True
    shown.counters.plain_at_end = Plain(200.0)
    panel.refresh()
    assert panel.speedup.text() == "1.9 ×"
    assert panel.replay.toolTip().startswith("Show the newest answer")
    shown.counters.plain_at_end = Plain(90.0)
    panel.refresh()
    assert panel.replay.toolTip().startswith("No replay. Speed-up: not measured (plain steps")


def test_while_the_prompt_is_read_it_says_so(shown: Meters, bridge: EngineBridge) -> None:
    shown.show("t1", None)
    reply = bridge.ask(HELLO, AskParams())
    shown.follow(reply, "t1")
    assert str(verdict(shown)) == "Reading the prompt. Drafting begins with the answer."
    reply.decoded.emit("It", "", [])  # the token of prefill belongs to no round
    assert "Reading" in str(verdict(shown))
    reply.decoded.emit(" is", "", [record(3)])
    assert "Drafting." in str(verdict(shown))
    shown.follow(reply, "t1")
    reply.failed.emit(EngineError("No.", remedy="None."))
    assert str(verdict(shown)).startswith("Ask something: what drafting does")


def test_an_answer_that_gained_is_told_by_that_however_it_ended(shown: Meters) -> None:
    shown.set_plain(Plain(100.0))
    shown.counters.add([*[record(7)] * 8, *[step()] * 8])
    assert str(verdict(shown)) == "Drafting paused: not worth it for this text."
    shown.counters.ended, shown.counters.plain_at_end = True, Plain(100.0)
    assert str(verdict(shown)) == "4.5 × faster than without drafting."
    shown.counters.plain_at_end = Plain()
    assert str(verdict(shown)) == "Drafting paused: not worth it for this text."


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        (WidthReason.PLAIN, "Drafting paused: not worth it for this text."),
        (WidthReason.FIXED, "Nothing was drafted for this answer."),
    ],
)
def test_an_answer_that_is_shown_again_reads_as_before(
    shown: Meters, bridge: EngineBridge, reason: WidthReason, says: str
) -> None:
    shown.show("t1", None)
    reply = bridge.ask(HELLO, AskParams())
    shown.follow(reply, "t1")
    reply.decoded.emit("It is", "", [step(reason)] * 2)
    rests = reason is WidthReason.PLAIN
    whole = answer(totals=shown.counters.totals, paused=rests, rests=rests)
    reply.finished.emit(whole)
    assert str(verdict(shown)) == says
    shown.follow(bridge.ask(HELLO, AskParams()), "t2")  # so that it is followed no more
    shown.show("t2", None)
    shown.show("t1", Figures.of(whole))
    assert str(verdict(shown)) == says


def test_an_answer_that_drafted_and_then_rested_reads_as_before(
    shown: Meters, bridge: EngineBridge
) -> None:
    says = "Drafting paused: not worth it for this text."
    shown.show("t1", None)
    reply = bridge.ask(HELLO, AskParams())
    shown.follow(reply, "t1")
    reply.decoded.emit("It is", "", [record(0), *[step()] * 8])
    assert str(verdict(shown)) == says
    whole = answer(totals=shown.counters.totals, plain=Plain(100.0), paused=True, rests=True)
    reply.finished.emit(whole)
    assert str(verdict(shown)) == says
    kept = Figures.from_dict(json.loads(json.dumps(Figures.of(whole).as_dict())))
    shown.follow(bridge.ask(HELLO, AskParams()), "t2")
    shown.show("t1", kept)
    assert str(verdict(shown)) == says
    before = {name: of for name, of in Figures.of(whole).as_dict().items() if name != "rests"}
    shown.show("t1", Figures.from_dict(before))  # by a version that did not keep it
    assert str(verdict(shown)) == "As fast as without drafting."


def test_no_row_of_guesses_where_nothing_is_drafted(qtbot: QtBot, shown: Meters) -> None:
    panel = MeterPanel(shown)
    qtbot.addWidget(panel)
    panel.show()
    shown.counters.add([replace(step(), draft_ms=None)] * STRIP)
    panel.refresh()
    assert panel.parts.accessibleDescription().startswith("verify 5.0 ms")
    assert not panel.strip.isVisible()
    assert not panel.bars.isVisible()
    assert panel.rate.isVisible()
    assert panel.block.text() == "1 of 8, paused"
    shown.counters.add([record(3)])
    panel.refresh()
    assert panel.strip.isVisible()
    assert panel.bars.isVisible()


def test_no_sentence_promises_a_drafter_that_is_not_there(shown: Meters) -> None:
    shown.set_model(replace(MODEL, block=0))
    assert str(verdict(shown)) == "No drafter is loaded: one token at a time."
    shown.set_plain(Plain(160.0))
    shown.counters.add([replace(record(3), origin=Origin.LOOKUP)] * 3)
    assert str(verdict(shown)) == "2.5 × faster than without drafting."
    shown.set_model(None)
    assert str(verdict(shown)) == "No model is loaded."


def test_plain_decoding_is_no_ratio_of_itself(shown: Meters) -> None:
    shown.set_plain(Plain(150.0))
    shown.counters.add([step()] * 20)
    assert shown.counters.tokens_per_s == pytest.approx(100)
    assert shown.speedup.times is None
    assert spread(shown) == ""


def test_the_spread_leaves_out_a_tenth_at_each_end(shown: Meters) -> None:
    shown.set_plain(Plain(100.0))
    shown.counters.add([record(3)] * 9)
    assert spread(shown) == ""  # too few to speak of
    shown.counters.add([record(3)] * 11)
    assert spread(shown) == ""  # all were alike
    shown.counters.add([record(7)] * 11)
    assert spread(shown) == "×4.0 to ×8.0 over the last steps"
    shown.counters.add([record(7, ms=9.0)] * 24)  # steps quicker than a plain one tell nothing
    shown.counters.add([record(3, ms=12.0)] * 20)
    assert spread(shown) == "×3.3 to ×8.0 over the last steps"


def test_a_position_is_told_once_enough_rounds_drafted_it(shown: Meters) -> None:
    shown.counters.add([record(1, drafted=2), record(2, drafted=2), record(3, drafted=3)])
    assert shown.counters.shares == [pytest.approx(1.0), pytest.approx(2 / 3), None]


def test_nothing_but_the_sentence_before_the_first_answer(
    qtbot: QtBot, look: Theme, shown: Meters
) -> None:
    panel = MeterPanel(shown)
    qtbot.addWidget(panel)
    panel.show()
    parts = (panel.spark, panel.strip, panel.bars, panel.details)
    assert not any(part.isVisible() for part in parts)
    shown.counters.add([record(3)])
    panel.refresh()
    assert all(part.isVisible() for part in parts)
    panel.details.click()
    assert not panel.bars.isVisible()
    panel.refresh()
    assert not panel.bars.isVisible()
    assert panel.strip.isVisible()


def test_every_meter_says_what_it_shows(qtbot: QtBot, look: Theme, shown: Meters) -> None:
    shown.counters.add([record(3)])
    panel = MeterPanel(shown)
    qtbot.addWidget(panel)
    panel.refresh()
    for meter in panel.findChildren(Painted):
        assert meter.accessibleName()
        assert meter.accessibleDescription()
    for label in panel.findChildren(QLabel):
        assert not re.search(r"\b(inf|nan|-\d)", label.text())


def test_meters_are_painted_at_most_fifteen_times_a_second(
    qtbot: QtBot, look: Theme, bridge: EngineBridge, shown: Meters
) -> None:
    panel = MeterPanel(shown)
    qtbot.addWidget(panel)
    panel.resize(panel.width(), 800)
    panel.show()
    qtbot.waitExposed(panel)
    qtbot.wait(100)
    told: list[float] = []
    shown.changed.connect(lambda: told.append(time.monotonic()))
    reply = bridge.ask(HELLO, AskParams())
    shown.follow(reply)
    before, began = panel.strip.painted, time.monotonic()
    for i in range(50):
        reply.decoded.emit("", "", [record(i % 7)])
        qtbot.wait(10)
    most = (time.monotonic() - began) * 15 + 1  # of as long as it took on this machine
    assert 2 <= panel.strip.painted - before <= most
    assert 2 <= len(told) <= most


def test_what_shows_the_same_is_not_painted_again(qtbot: QtBot, look: Theme, shown: Meters) -> None:
    panel = MeterPanel(shown)
    qtbot.addWidget(panel)
    panel.resize(panel.width(), 900)
    panel.show()
    shown.counters.add([record(3)] * 80)
    panel.refresh()
    before: list[int] = []
    while before != (now := [part.painted for part in panel.findChildren(Painted)]):
        before = now  # a window that is shown is painted more than once
        qtbot.wait(200)
    shown.counters.add([record(3)] * 80)
    panel.refresh()
    qtbot.wait(50)
    assert [part.painted for part in panel.findChildren(Painted)] == before
    shown.counters.add([record(2)])
    panel.refresh()
    qtbot.waitUntil(lambda: sum(part.painted for part in panel.findChildren(Painted)) > sum(before))


def test_a_hidden_panel_is_not_worked_on(
    qtbot: QtBot, look: Theme, bridge: EngineBridge, shown: Meters, wait_until: WaitUntil
) -> None:
    panel = MeterPanel(shown)
    qtbot.addWidget(panel)
    told: list[None] = []
    shown.changed.connect(lambda: told.append(None))
    reply = bridge.ask(HELLO, AskParams())
    shown.follow(reply)
    reply.decoded.emit("", "", [record(3)])
    wait_until(lambda: bool(told))
    assert panel.rate.text() == ""
    panel.show()  # and is up to date as soon as it is seen
    assert panel.rate.text() == "400 tok/s"
