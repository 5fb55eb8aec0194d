"""``slipstream selftest``: it is green on a good engine and names what a bad one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from app.engine import Ask, Command, Decoded, Event, FakeEngine, Finished
from app.errors import EngineError, ModelFileError, NativeLibraryError
from tests.cli.support import Run, Slipstream

NAMES = ["native library", "model", "answers", "lossless", "acceptance", "stream", "second turn"]


class Bent(FakeEngine):
    """A scripted engine whose answers are bent by the test."""

    bend: Callable[[Ask, Any], Any] = staticmethod(lambda ask, event: event)

    def events(self, request: int, command: Command) -> Iterator[Event]:
        for event in super().events(request, command):
            yield self.bend(command, event) if isinstance(command, Ask) else event


@pytest.fixture
def engine() -> Bent:
    return Bent()


def failures(run: Run) -> dict[str, str]:
    assert [check["name"] for check in run.json["checks"]] == NAMES
    assert run.json["ok"] is (run.status == 0)
    return {check["name"]: check["detail"] for check in run.json["checks"] if not check["ok"]}


def test_all_is_well(slipstream: Slipstream) -> None:
    run = slipstream("selftest", "--json")
    assert failures(run) == {}
    assert list(run.json) == ["ok", "checks"]
    assert all(list(check) == ["name", "ok", "detail"] for check in run.json["checks"])
    assert all(check["detail"] for check in run.json["checks"])


def test_people_read_lines(slipstream: Slipstream) -> None:
    run = slipstream("selftest")
    assert run.status == 0
    assert [line.startswith("ok ") for line in run.out.splitlines()] == [True] * len(NAMES)


def test_without_a_drafter(slipstream: Slipstream, engine: Bent) -> None:
    engine.script.block = 0
    assert failures(slipstream("selftest", "--json")) == {}


def test_a_drafter_that_changes_the_text(slipstream: Slipstream, engine: Bent) -> None:
    def bend(ask: Ask, event: Event) -> Event:
        if isinstance(event, Finished) and ask.params.draft:
            ids = (*event.answer.token_ids[:3], -1)
            return replace(event, answer=replace(event.answer, token_ids=ids))
        return event

    engine.bend = bend
    told = failures(slipstream("selftest", "--json"))
    assert list(told) == ["lossless"]
    assert "from token 3 on" in told["lossless"]


def test_nothing_is_accepted(slipstream: Slipstream, engine: Bent) -> None:
    engine.script.accepted = (0,)
    assert list(failures(slipstream("selftest", "--json"))) == ["acceptance"]


def test_a_stream_that_loses_a_character(slipstream: Slipstream, engine: Bent) -> None:
    def bend(_: Ask, event: Event) -> Event:
        return replace(event, text=event.text[:-1]) if isinstance(event, Decoded) else event

    engine.bend = bend
    assert list(failures(slipstream("selftest", "--json"))) == ["stream"]


def test_a_second_turn_that_remembers_wrongly(slipstream: Slipstream, engine: Bent) -> None:
    turns: list[int] = []

    def bend(ask: Ask, event: Event) -> Event:
        if isinstance(event, Finished) and len(ask.chat) == 3:
            turns.append(1)
            ids = event.answer.token_ids[: len(turns)]
            return replace(event, answer=replace(event.answer, token_ids=ids))
        return event

    engine.bend = bend
    told = failures(slipstream("selftest", "--json"))
    assert list(told) == ["second turn"]
    assert "from token 1 on" in told["second turn"]


def test_what_needs_the_model_is_not_run(slipstream: Slipstream, engine: Bent) -> None:
    engine.script.load_error = ModelFileError("It is cut.", remedy="Convert it again.")
    told = failures(slipstream("selftest", "--json"))
    assert list(told) == NAMES[1:]
    assert told["model"] == "It is cut. Convert it again."
    assert told["stream"] == "Not run, because `model` failed."


def test_an_answer_that_fails(slipstream: Slipstream, engine: Bent) -> None:
    engine.script.error = EngineError("It fell over.", remedy="Restart.")
    assert list(failures(slipstream("selftest", "--json"))) == NAMES[2:]


def test_no_native_library(slipstream: Slipstream, engine: Bent) -> None:
    engine.script.devices_error = NativeLibraryError("ABI 2, not 1.", remedy="Install anew.")
    assert list(failures(slipstream("selftest", "--json"))) == NAMES
    assert engine.closed
