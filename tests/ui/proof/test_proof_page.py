"""Prove it and Replay, as the window shows them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPointF, QRect, Qt
from pytestqt.qtbot import QtBot

from app.engine import (
    Ask,
    Command,
    Compare,
    Control,
    Count,
    Decoded,
    Event,
    Figures,
    Finished,
    FinishReason,
    RoundTotals,
    Script,
)
from app.errors import ContextFullError, EngineError
from app.proof import Proof
from app.ui.look.icons import IconButton
from app.ui.look.theme import Theme
from app.ui.proof.lane import Lane, mark_difference
from app.ui.proof.prover import DRAFTED, PLAIN
from app.ui.proof.replay import Replay, possible
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine
from tests.ui.wheel import turn

Ask_ = Callable[[MainWindow, str], None]

TEXT = "one two three four five six seven eight nine ten"


class Faulty(BatchEngine):
    """Its drafted answers have another word at token 5."""

    def events(self, request: int, command: Command) -> Iterator[Event]:
        for event in super().events(request, command):
            if not isinstance(command, Ask) or not command.params.draft or len(command.chat) > 1:
                yield event
            elif isinstance(event, Decoded) and event.round and 5 in event.round.token_ids:
                emitted = tuple(t.replace("six", "SIX") for t in event.round.emitted)
                ids = tuple(99 if i == 5 else i for i in event.round.token_ids)
                round_ = replace(event.round, emitted=emitted, token_ids=ids)
                yield replace(event, text=event.text.replace("six", "SIX"), round=round_)
            elif isinstance(event, Finished):
                ids = (*event.answer.token_ids[:5], 99, *event.answer.token_ids[6:])
                yield replace(event, answer=replace(event.answer, token_ids=ids))
            else:
                yield event


class Ending(Faulty):
    """The engine ends the thinking behind three tokens, with two that are neither of them."""

    def events(self, request: int, command: Command) -> Iterator[Event]:
        for event in super().events(request, command):
            if isinstance(event, Finished) and isinstance(command, Ask):
                ids = event.answer.token_ids
                answer = replace(
                    event.answer,
                    token_ids=(*ids[:3], 901, 902, *ids[3:]),
                    outside={**event.answer.outside, 901: "</think>", 902: "\n\n"},
                )
                event = replace(event, answer=answer)
            yield event


def proved(window: MainWindow, wait_until: WaitUntil) -> Proof:
    window.actions_.prove.trigger()
    page = window.proof_page
    wait_until(lambda: not page.busy)
    wait_until(lambda: all(lane.rendered for lane in page.lanes))
    assert page.proof is not None
    return page.proof


def test_both_answers_come_live_and_are_identical(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil
) -> None:
    engine = BatchEngine(Script(text=TEXT, plain_tokens_per_s=100.0))
    window = open_window(engine)
    assert not window.actions_.prove.isEnabled()
    ask(window, "Count")
    before = len(engine.asked)
    grown: list[int] = []
    window.actions_.prove.trigger()
    page = window.proof_page
    assert page.isVisible()
    assert not window.chats.isVisible()
    assert page._prover is not None
    page._prover.grew.connect(lambda which, text, rounds: grown.append(which))
    wait_until(lambda: not page.busy)
    assert [a.params.draft for a in engine.asked[before:]] == [False, True]
    assert [which for which, _ in itertools.groupby(grown)] == [PLAIN, DRAFTED]
    assert len(grown) > 2
    assert [lane.text for lane in page.lanes] == [TEXT, TEXT]
    assert page.verdict.text() == "Identical, 10 tokens"
    assert "90.0 ms without drafting, 20.0 ms with it" in page.about.text()
    rates = [lane.about.text() for lane in page.lanes]  # the first token belongs to no round
    assert rates == ["10 tokens, 100 tok/s", "10 tokens, 450 tok/s"]
    assert page.lanes[PLAIN].time.text() == "90.0 ms"
    assert "10 tokens" in page.lanes[DRAFTED].about.text()


def test_it_is_the_prompt_of_the_chat_with_one_seed(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil
) -> None:
    """The whole path to the newest question, without its answer."""
    engine = BatchEngine(Script(text=TEXT))
    window = open_window(engine, verify="host-sample")
    ask(window, "Count")
    ask(window, "Again")
    proved(window, wait_until)
    chats = {a.chat for a in engine.asked[2:]}
    assert len(chats) == 1
    assert [m.content for m in chats.pop()] == ["Count", TEXT, "Again"]
    seeds = {a.params.sampling.seed for a in engine.asked[2:]}
    assert len(seeds) == 1
    assert None not in seeds


@pytest.mark.parametrize(
    ("control", "word"),
    [
        (Control(gap=0.01, spread=0.02, flips=False), "No fault"),
        (Control(gap=0.5, spread=0.02, flips=False), "A fault"),
        (
            Control(gap=0.3, spread=None, flips=True),
            "No fault: the model alone, reading many tokens at once, leaves its own answer before",
        ),
    ],
)
def test_the_first_difference_has_the_controls_word(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil, control: Control, word: str
) -> None:
    engine = Faulty(Script(text=TEXT, control=control))
    window = open_window(engine)
    ask(window, "Count")
    proof = proved(window, wait_until)
    assert (proof.at, proof.control) == (5, control)
    compared = [c for c in engine.commands if isinstance(c, Compare)]
    assert [(c.plain, c.at) for c in compared] == [(proof.plain.token_ids, 5)]
    page = window.proof_page
    assert page.verdict.text() == (
        "5 tokens identical, then “ six” without drafting and “ SIX” with it"
    )
    assert page.about.text().startswith(word)
    (marked,) = page.lanes[DRAFTED].body.extraSelections()
    assert marked.cursor.selectedText().startswith("SIX")


def test_behind_a_thinking_that_was_ended_the_right_words_are_quoted(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil
) -> None:
    engine = Ending(Script(text=TEXT.removeprefix("one two "), reasoning="one two"))
    window = open_window(engine, think=True)
    ask(window, "Count")
    assert proved(window, wait_until).at == 7
    page = window.proof_page
    assert page.verdict.text() == (
        "7 tokens identical, then “ six” without drafting and “ SIX” with it"
    )
    assert [lane.thoughts.toPlainText() for lane in page.lanes] == ["one two"] * 2
    for lane, word in zip(page.lanes, ("six", "SIX"), strict=True):
        assert lane.about.text().startswith("12 tokens")
        assert lane.thoughts.extraSelections() == []
        (marked,) = lane.body.extraSelections()
        assert marked.cursor.selectedText().startswith(word)


def test_both_answers_are_set_as_messages_are(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil, look: Theme
) -> None:
    engine = Faulty(Script(text="# One\n\n**two** three four six `seven`\n\n- eight\n- *nine*"))
    window = open_window(engine)
    ask(window, "Count")
    proved(window, wait_until)
    try:
        for lane, word in zip(window.proof_page.lanes, ("six", "SIX"), strict=True):
            shown = f"One\ntwo three four {word} seven\neight\nnine"
            assert lane.body.toPlainText() == shown
            (marked,) = lane.body.extraSelections()
            assert marked.cursor.selectedText().startswith(word)
        look.choose("dark")
        wait_until(lambda: all(lane.rendered for lane in window.proof_page.lanes))
        assert window.proof_page.lanes[DRAFTED].body.toPlainText() == shown
        assert window.proof_page.lanes[DRAFTED].body.extraSelections()
    finally:
        look.choose("light")


def test_sampled_text_has_no_control_run(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil
) -> None:
    engine = Faulty(Script(text=TEXT))
    window = open_window(engine, verify="host-sample")
    ask(window, "Count")
    assert proved(window, wait_until).control is None
    assert "no control run" in window.proof_page.about.text()
    assert not any(isinstance(c, Compare) for c in engine.commands)


def test_a_record_is_written(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil, tmp_path: Path
) -> None:
    window = open_window(BatchEngine(Script(text=TEXT)))
    ask(window, "Count")
    proof = proved(window, wait_until)
    window.proof_page.save(tmp_path / "proof.json")
    assert Proof.read(tmp_path / "proof.json") == proof
    assert proof.subject.model == "demo"
    assert "--record proof.json" in window.notices.findChildren(type(window.demo_note))[-1].text()


def test_it_can_be_stopped_and_left(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil, qtbot: QtBot
) -> None:
    engine = BatchEngine(Script(text=TEXT), batch=1)
    window = open_window(engine)
    ask(window, "Count")
    engine.script.text = TEXT * 400
    page = window.proof_page
    window.actions_.prove.trigger()
    wait_until(lambda: bool(page.lanes[PLAIN].text))
    page.stop_button.click()
    wait_until(lambda: not page.busy)
    assert page.verdict.text() == "Stopped before there was anything to compare."
    page.again_button.click()
    wait_until(lambda: bool(page.lanes[PLAIN].text))
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not page.isVisible()
    assert window.chats.isVisible()
    wait_until(lambda: engine._running is None)
    assert not page.isVisible()


@pytest.mark.parametrize("ended", [PLAIN, DRAFTED])
def test_a_stop_that_comes_at_the_end_of_a_run_begins_nothing_more(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil, ended: int
) -> None:
    """The run has ended, and the window does not know that yet."""
    engine = Faulty(Script(text=TEXT), batch=1)
    window = open_window(engine)
    ask(window, "Count")
    before = len(engine.commands)
    window.actions_.prove.trigger()
    page = window.proof_page
    wait_until(lambda: bool(page.lanes[ended].text))
    while engine.step():
        pass  # its end lies in the queue
    page.stop_button.click()
    wait_until(lambda: not page.busy)
    begun = [type(c) for c in engine.commands[before:] if not isinstance(c, Count)]
    assert begun == [Ask] * (ended + 1)
    if ended == PLAIN:
        assert page.verdict.text() == "Stopped before there was anything to compare."
    else:
        assert page.about.text().startswith("The control run was stopped: whether that is a fault")


def test_what_fails_is_told(open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil) -> None:
    engine = BatchEngine(Script(text=TEXT))
    window = open_window(engine)
    ask(window, "Count")
    engine.script.error = EngineError("It fell over.", remedy="Try again.")
    window.actions_.prove.trigger()
    wait_until(lambda: not window.proof_page.busy)
    assert window.proof_page.verdict.text() == "It fell over."
    assert not window.proof_page.save_button.isVisible()


def test_a_question_or_another_chat_takes_the_place(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil
) -> None:
    window = open_window(BatchEngine(Script(text=TEXT)))
    ask(window, "Count")
    proved(window, wait_until)
    window.controller.ask("More")
    assert window.chats.isVisible()
    wait_until(lambda: not window.controller.busy)
    window.actions_.replay.trigger()
    assert window.proof_page.isVisible()
    window.controller.new_chat()
    assert window.chats.isVisible()
    assert not window.actions_.prove.isEnabled()


def test_a_load_does_not_wait_for_a_proof(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil
) -> None:
    engine = BatchEngine(Script(text=TEXT), batch=1)
    window = open_window(engine)
    ask(window, "Count")
    engine.script.text = TEXT * 400
    window.actions_.prove.trigger()
    wait_until(lambda: bool(window.proof_page.lanes[PLAIN].text))
    window.controller.load()
    wait_until(lambda: not window.loader.obstacle)
    assert len(window.proof_page.lanes[PLAIN].text) < len(engine.script.text)


FIGURES = Figures(
    finish_reason=FinishReason.STOP,
    completion_tokens=11,
    prompt_tokens=5,
    reused=0,
    prefill_ms=1.0,
    totals=RoundTotals(
        rounds=4, drafted=28, accepted=6, total_ms=400.0, accepted_per_round=(3, 0, 2, 1)
    ),
    plain_tokens_per_s=10.0,
    backend="cpu",
    device="A CPU",
    seed=None,
)


def test_a_replay_keeps_both_measured_speeds() -> None:
    replay = Replay("x" * 110, FIGURES)
    assert replay.duration_ms(PLAIN) == 1000.0
    assert replay.duration_ms(DRAFTED) == 400.0
    assert [replay.tokens_at(PLAIN, ms) for ms in (0, 99, 100, 1000, 5000)] == [1, 1, 2, 11, 11]
    assert [replay.tokens_at(DRAFTED, ms) for ms in (0, 100, 250, 300, 400)] == [1, 5, 6, 9, 11]


def test_a_proof_whose_plain_steps_were_held_up_tells_no_speed_up(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil
) -> None:
    window = open_window(BatchEngine(Script(text=TEXT, plain_tokens_per_s=60.0)))
    ask(window, "Count")
    proved(window, wait_until)
    assert window.proof_page.about.text() == (
        "150 ms without drafting, 20.0 ms with it. Speed-up not measured (plain steps were held "
        "up, as beside other programs)."
    )
    assert not window.panel.replay.isEnabled()


def test_no_replay_without_both_speeds() -> None:
    assert possible(FIGURES)
    assert not possible(None)
    assert not possible(replace(FIGURES, plain_tokens_per_s=None))
    assert not possible(replace(FIGURES, totals=RoundTotals(rounds=3, total_ms=30.0)))
    assert not possible(replace(FIGURES, plain_tokens_per_s=9.5))  # slower than a round
    assert not possible(replace(FIGURES, plain_uneven=True))
    assert not possible(replace(FIGURES, pace=2.0))


def test_a_replay_ends_with_the_whole_text(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil
) -> None:
    engine = BatchEngine(Script(text=TEXT, reasoning="\nOne by one."))
    window = open_window(engine, think=True)
    ask(window, "Count")
    window.panel.replay.click()
    page = window.proof_page
    assert page.isVisible()
    wait_until(lambda: page.again_button.isVisible())
    assert [lane.text for lane in page.lanes] == [TEXT, TEXT]
    assert [lane.thoughts.toPlainText() for lane in page.lanes] == ["One by one."] * 2
    assert "as fast with drafting" in page.verdict.text()
    assert len(engine.asked) == 1  # nothing is computed anew


def test_where_one_goes_on_only_what_is_more_is_marked(qtbot: QtBot, look: Theme) -> None:
    lanes = Lane("One"), Lane("Other")
    for lane, text in zip(lanes, ("```\nsame", "```\nsame\nand more\n```\n"), strict=True):
        qtbot.addWidget(lane)
        lane.add(text, "thinking")
        lane.finish()
    mark_difference(*lanes)
    for lane, more in zip(lanes, ("", "and more"), strict=True):
        (marked,) = lane.body.extraSelections()
        assert marked.cursor.selectedText().strip("\u2029") == more
    assert not any(lane.thoughts.extraSelections() for lane in lanes)
    for lane in lanes:
        lane.clear("again")
        assert not [b for b in lane.body.findChildren(IconButton) if not b.isHidden()]


def test_numbers_of_items_are_seen_where_they_are_marked(qtbot: QtBot, look: Theme) -> None:
    lanes = Lane("One"), Lane("Other")
    for lane, word in zip(lanes, ("one", "other"), strict=True):
        qtbot.addWidget(lane)
        lane.add(f"1. The {word}\n2. The same\n", "")
        lane.finish()
        lane.resize(300, 300)
        lane.show()
    body = lanes[0].body
    cursor = body.document().find("The same")
    line = body.cursorRect(cursor)
    number = QRect(0, line.top(), 26, line.height())

    def darkest() -> int:
        image = body.grab(number).toImage()
        size = image.size()
        places = ((x, y) for x in range(size.width()) for y in range(size.height()))
        return min(image.pixelColor(x, y).lightness() for x, y in places)

    before = darkest()
    mark_difference(*lanes)
    assert darkest() <= before + 10


@pytest.mark.parametrize("text_size", [15, 22])
def test_it_fits_a_narrow_window(
    open_window: OpenWindow,
    ask: Ask_,
    wait_until: WaitUntil,
    look: Theme,
    text_size: int,
) -> None:
    window = open_window(BatchEngine(Script(text=TEXT)), text_size=text_size)
    try:
        window.resize(360, 640)
        ask(window, "Count")
        proved(window, wait_until)
        assert window.proof_page.minimumSizeHint().width() <= 360
        assert window.demo_note.minimumSizeHint().width() <= 328
    finally:
        look.set_text_size(15)


def test_the_first_difference_is_scrolled_to(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil
) -> None:
    engine = Faulty(Script(text=f"{TEXT}\n\n" + "more and more\n" * 300))
    window = open_window(engine)
    ask(window, "Count")
    proved(window, wait_until)
    for lane in window.proof_page.lanes:
        (marked,) = lane.body.extraSelections()
        begin = lane.body.textCursor()
        begin.setPosition(marked.cursor.selectionStart())
        y = lane.body.cursorRect(begin).top() - lane._area.verticalScrollBar().value()
        assert 0 <= y < lane._area.viewport().height()
        assert lane._area.verticalScrollBar().maximum() > 1_000


def test_a_lane_that_is_read_stays_where_it_is(
    qtbot: QtBot, look: Theme, wait_until: WaitUntil
) -> None:
    lane = Lane("Without drafting")
    qtbot.addWidget(lane)
    lane.resize(400, 300)
    lane.show()
    bar = lane._area.verticalScrollBar()

    def grow() -> None:
        before = bar.maximum()
        lane.add("word word\n\n" * 30, "")
        wait_until(lambda: bar.maximum() > before)

    grow()
    assert bar.value() == bar.maximum()
    bar.setValue(100)
    grow()
    assert bar.value() == 100
    bar.setValue(bar.maximum())
    turn(lane._area.viewport(), QPointF(100, 100), down=15)
    before = bar.value()
    grow()
    assert bar.value() == before
    lane.clear("")
    wait_until(lambda: bar.maximum() == 0)
    grow()
    assert bar.value() == bar.maximum()


def test_there_is_something_to_prove_once_it_is_answered(
    open_window: OpenWindow, ask: Ask_, wait_until: WaitUntil
) -> None:
    engine = BatchEngine(Script(text=TEXT * 40), batch=1)
    window = open_window(engine)
    prove, panel = window.actions_.prove, window.panel
    window.controller.ask("Count")
    assert not prove.isEnabled()
    assert not panel.prove.isVisible()
    wait_until(lambda: bool(window.chats.view.answers and window.chats.view.answers[0].turn.text))
    assert not prove.isEnabled()
    wait_until(panel.prove.isVisible)  # from the first figures on: nothing moves at the end
    engine.hurry()
    wait_until(lambda: not window.controller.busy)
    assert prove.isEnabled()
    assert panel.prove.isEnabled()
    assert panel.prove.isVisible()
    engine.script.error = ContextFullError("Too long.", remedy="Start anew.")
    window.controller.ask("And all of it")
    wait_until(lambda: not window.controller.busy)
    assert not prove.isEnabled()
    assert not panel.prove.isVisible()
