"""From a name to a loaded pair: what people are told on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.engine import Command, Event, FakeEngine, Loaded
from tests.cli.support import Slipstream


def test_a_gpu_that_is_not_taken_is_worth_a_warning(
    slipstream: Slipstream, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def events(self: FakeEngine, request: int, command: Command) -> Iterator[Event]:
        for event in normal(self, request, command):
            if isinstance(event, Loaded):
                yield replace(event, model=replace(event.model, fallback="It is too small."))
            else:
                yield event

    normal = FakeEngine.events
    monkeypatch.setattr(FakeEngine, "events", events)
    assert "It is too small." in slipstream("ask", "Hello").err
    engine.device_list = engine.device_list[:1]
    assert "It is too small." not in slipstream("ask", "Hello").err
    assert "It is too small." in slipstream("ask", "Hello", "-v").err
