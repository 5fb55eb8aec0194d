"""``slipstream bench``: what is measured, and in which order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import replace
from multiprocessing.context import SpawnProcess

import pytest

from app.cli.bench import PROMPTS, _busy_programs, _Mode, _row
from app.engine import Answer, AskParams, FakeEngine, FinishReason, RoundTotals
from tests.cli.support import Slipstream


def test_json_fields(slipstream: Slipstream, engine: FakeEngine) -> None:
    run = slipstream("bench", "--json", "--runs", "1", "--backend", "cpu")
    assert run.status == 0
    value = run.json
    assert list(value) == [
        *(
            "model",
            "machine",
            "backend",
            "plain_tokens_per_s",
            "rows",
            "governor",
            "busy",
            "answered_before",
        ),
    ]
    assert (value["model"], value["backend"], value["machine"]) == ("demo", "cpu", "Scripted CPU")
    assert [row["block"] for row in value["rows"]] == [2, 4, 8]
    for row in value["rows"]:
        assert list(row) == [
            "block",
            "tokens_per_s",
            "mean_accepted_length",
            "speedup",
            "speedup_not_measured",
        ]
        assert row["speedup"] == pytest.approx(row["tokens_per_s"] / value["plain_tokens_per_s"])
    governor = value["governor"]
    assert list(governor) == [
        "tokens_per_s",
        "speedup",
        "speedup_not_measured",
        "of_best_fixed",
    ]
    best = max(value["plain_tokens_per_s"], *(row["tokens_per_s"] for row in value["rows"]))
    assert governor["of_best_fixed"] == pytest.approx(governor["tokens_per_s"] / best)
    assert value["busy"] == []
    assert list(value["answered_before"]) == ["plain", "auto", "lookup"]
    last = engine.asked[-3:]
    assert [(asked.params.draft, asked.params.lookup) for asked in last] == [
        (False, False),
        (True, False),
        (True, True),
    ]
    assert [message.content for message in last[0].chat][1] == engine.script.text


def test_beside_busy_programs(
    slipstream: Slipstream, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[SpawnProcess] = []
    start = SpawnProcess.start

    def noted(process: SpawnProcess) -> None:
        start(process)
        started.append(process)

    monkeypatch.setattr(SpawnProcess, "start", noted)
    run = slipstream("bench", "--json", "--runs", "1", "--busy", "2")
    value = run.json
    assert [row["programs"] for row in value["busy"]] == [1, 2]
    for row in value["busy"]:
        for name, quiet in (("plain", value), ("governor", value["governor"])):
            before = quiet["plain_tokens_per_s" if name == "plain" else "tokens_per_s"]
            assert row[f"{name}_kept"] == pytest.approx(row[f"{name}_tokens_per_s"] / before)
    assert len(started) == 3
    assert all(program.exitcode is not None for program in started), "they outlive the bench"


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGTERM to send")
def test_a_busy_program_ends_with_a_bench_that_is_killed() -> None:
    script = (
        "import os, signal\n"
        "from app.cli.bench import _busy_programs\n"
        "with _busy_programs(1):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    started = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        # It holds the pipe open as long as it runs.
        assert started.communicate(timeout=60) == (b"", None)
    except subprocess.TimeoutExpired:
        pytest.fail("it computes on")
    assert started.returncode == -signal.SIGTERM


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT to send")
def test_ctrl_c_is_no_fault_of_a_busy_program(capfd: pytest.CaptureFixture[str]) -> None:
    """A terminal sends it to all of them."""
    with _busy_programs(1):
        (program,) = multiprocessing.active_children()
        assert program.pid
        os.kill(program.pid, signal.SIGINT)
        program.join(0.5)
        assert program.is_alive()
    assert capfd.readouterr().err == ""


def test_busy_without_a_drafter(slipstream: Slipstream, engine: FakeEngine) -> None:
    engine.script.block = 0
    (row,) = slipstream("bench", "--json", "--runs", "1", "--busy", "1").json["busy"]
    assert list(row) == ["programs", "plain_tokens_per_s", "plain_kept"]


@pytest.mark.parametrize(
    ("trained", "blocks"),
    [(1, []), (3, [2, 3]), (16, [2, 4, 8, 12, 16]), (24, [2, 4, 8, 12, 16, 24])],
)
def test_blocks_up_to_the_trained_one(
    slipstream: Slipstream, engine: FakeEngine, trained: int, blocks: list[int]
) -> None:
    engine.script.block = trained
    rows = slipstream("bench", "--json", "--runs", "1").json["rows"]
    assert [row["block"] for row in rows] == blocks


def test_modes_take_turns_on_the_same_prompts(slipstream: Slipstream, engine: FakeEngine) -> None:
    slipstream("bench", "--runs", "2", "--max-tokens", "9")
    modes = [(False, None), (True, 2), (True, 4), (True, 8), (True, None)]
    asked = [ask for ask in engine.asked if len(ask.chat) == 1]
    turns = [(ask.chat[0].content, ask.params.draft, ask.params.block) for ask in asked]
    warm_up = [(PROMPTS[0], *mode) for mode in modes]
    in_turns = warm_up + 2 * [(prompt, *mode) for prompt in PROMPTS for mode in modes]
    assert turns[: len(in_turns)] == in_turns
    assert turns[len(in_turns) :] == 2 * [(prompt, False, None) for prompt in PROMPTS]
    assert {ask.params.max_tokens for ask in engine.asked} == {9}


def test_without_a_drafter(slipstream: Slipstream, engine: FakeEngine) -> None:
    engine.script.block = 0
    value = slipstream("bench", "--json", "--runs", "1").json
    assert value["plain_tokens_per_s"] > 0
    assert value["rows"] == []
    assert value["governor"].pop("speedup_not_measured") == "nothing was drafted"
    assert set(value["governor"].values()) == {None}
    assert not any(ask.params.draft for ask in engine.asked if not ask.params.lookup)
    assert list(value["answered_before"]) == ["plain", "lookup"]


def test_one_row_is_told_of_the_same_answers() -> None:
    """Rates and lengths of the one in the middle: none is faster than it is long."""
    mode, plain = _Mode("block", AskParams()), _Mode("plain", AskParams())
    for tokens, rounds in ((120, 40), (120, 40), (900, 800)):
        drafted = {"drafted": 2 * rounds, "accepted": tokens - rounds}
        for one, steps, counts in ((mode, rounds, drafted), (plain, tokens, {})):
            totals = RoundTotals(rounds=steps, total_ms=10.0 * steps, **counts)
            one.add(replace(Answer.empty(FinishReason.STOP), totals=totals))
    row = _row(mode, plain)
    assert row["mean_accepted_length"] == pytest.approx(3)
    assert row["speedup"] == pytest.approx(3)


def test_nothing_to_time_is_null(slipstream: Slipstream, engine: FakeEngine) -> None:
    engine.script.text = "Yes."
    value = slipstream("bench", "--json", "--runs", "1").json
    assert value["plain_tokens_per_s"] is None
    assert {row["speedup"] for row in value["rows"]} == {None}


def test_rounds_quicker_than_plain_steps_give_no_speed_up(
    slipstream: Slipstream, engine: FakeEngine
) -> None:
    engine.script.plain_tokens_per_s = 60.0
    value = slipstream("bench", "--json", "--runs", "1").json
    for row in (*value["rows"], value["governor"]):
        assert row["speedup"] is None
        assert "held up" in row["speedup_not_measured"]
    assert "speed-up not measured: plain steps" in slipstream("bench", "--runs", "1").out


def test_a_table_for_people(slipstream: Slipstream) -> None:
    run = slipstream("bench", "--runs", "1")
    lines = run.out.splitlines()
    assert lines[0].startswith("Built-in guide on gpu (Scripted GPU)")
    names = [line[:10].strip() for line in lines[1:]]
    modes = ["plain", "block 2", "block 4", "block 8", "auto"]
    assert names == [*modes, "a question", "plain", "auto", "lookup"]


@pytest.mark.parametrize(
    "options", [("--runs", "0"), ("--runs", "1001"), ("--max-tokens", "1"), ("--busy", "-1")]
)
def test_usage_errors(slipstream: Slipstream, options: tuple[str, str]) -> None:
    run = slipstream("bench", "--json", *options)
    assert (run.status, run.out) == (2, "")
