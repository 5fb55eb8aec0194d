"""What an answer's turn is told of its making."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, pairwise

import pytest

from app.engine import Command, Decoded, Event, Figures, Finished, Script
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine


class SecondByPiece(BatchEngine):
    """Gives a piece of text a second, all of which the window comes to hear of at once."""

    def __init__(self, script: Script) -> None:
        super().__init__(script, batch=100_000)
        self.told: list[Decoded | Finished] = []

    def events(self, request: int, command: Command) -> Iterator[Event]:
        ticks = count(time.monotonic() + 1)
        for event in super().events(request, command):
            if isinstance(event, Decoded | Finished):
                event = replace(event, at=next(ticks))
                self.told.append(event)
            yield event


def test_times_are_those_of_the_engine_however_busy_the_window_is(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    engine = SecondByPiece(Script(text="one two three", reasoning="hm well"))
    window = open_window(engine, think=True)
    window.controller.ask("Go")
    wait_until(lambda: not window.controller.answers.all)
    turn = window.controller.current.path()[-1]
    assert isinstance(turn.figures, Figures)
    assert all(after.at - before.at == pytest.approx(1) for before, after in pairwise(engine.told))
    pieces = [event for event in engine.told if isinstance(event, Decoded)]
    thought = next(i for i, event in enumerate(pieces) if event.reasoning)
    said = next(i for i, event in enumerate(pieces) if event.text)
    assert said > thought
    assert turn.thought_ms == pytest.approx(1000 * (said - thought), abs=1)
    took = turn.figures.wall_ms - turn.figures.first_token_ms
    assert took == pytest.approx(1000 * len(pieces), abs=1)
