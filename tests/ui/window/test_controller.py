"""What is decided without any widget: what is asked, and to which turn its answer goes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject

from app.engine import Answer, FinishReason, Script
from app.settings import Settings
from app.ui.bridge import EngineBridge
from app.ui.meters.model import Meters
from app.ui.models.loading import Loader
from app.ui.settings.flow import SettingsFlow
from app.ui.window.controller import Controller
from tests.ui.conftest import WaitUntil
from tests.ui.fakes import BatchEngine, FakeModels

LONG = " ".join(f"word{i}" for i in range(100))


class Rig:
    """A controller over a scripted engine that works when a test drains."""

    def __init__(self, owner: QObject) -> None:
        self.engine = BatchEngine(Script(text=LONG), batch=1)
        self.models = FakeModels()
        self.bridge = EngineBridge(self.engine, owner)
        self.meters = Meters(owner)
        self.flow = SettingsFlow(Settings(), lambda _: None, owner)
        self.loader = Loader(self.bridge, self.models, owner)
        self.controller = Controller(self.bridge, self.loader, self.meters, self.flow, owner)
        self.bridge.model_changed.connect(self.meters.set_model)

    def drain(self, turns: int = 1) -> None:
        for _ in range(turns):
            self.bridge.drain()


@pytest.fixture
def rig(owner: QObject, wait_until: WaitUntil) -> Iterator[Rig]:
    result = Rig(owner)
    result.controller.load()
    wait_until(lambda: not result.loader.obstacle)
    result.bridge._timer.stop()
    yield result
    result.bridge.close()


def test_an_answer_made_anew_while_the_old_one_streams(rig: Rig) -> None:
    """What still comes of the old one goes to the old turn, and counts for nothing else."""
    controller = rig.controller
    controller.ask("Go")
    rig.drain(6)
    old = controller.current.last_answer
    assert old is not None
    assert old.text
    assert controller.again()
    new = controller.current.last_answer
    assert new is not None
    assert new is not old
    rig.drain(2)
    assert isinstance(old.figures, Answer)
    assert old.figures.finish_reason is FinishReason.CANCELLED
    assert old.text == old.figures.text
    assert controller.busy  # it is the new one that runs
    assert rig.meters.counters.totals.rounds < 2
    rig.drain(100)
    assert new.text == LONG
    assert not controller.busy
    assert isinstance(new.figures, Answer)
    assert rig.meters.counters.totals.rounds == new.figures.totals.rounds
    assert controller.current.beside(new) == (old, new)


def test_a_question_takes_the_place_of_what_runs(rig: Rig) -> None:
    controller = rig.controller
    controller.ask("One")
    rig.drain(6)
    controller.ask("Two")
    rig.drain(100)
    one, first, two, second = controller.current.path()
    assert (one.text, two.text) == ("One", "Two")
    assert LONG.startswith(first.text)
    assert first.text != LONG
    assert second.text == LONG


def test_without_a_model_nothing_is_asked(owner: QObject) -> None:
    rig = Rig(owner)
    assert not rig.controller.ask("Hello?")
    assert not rig.controller.current.turns
    rig.bridge.close()


def test_nothing_is_answered_anew_where_nothing_was_asked(rig: Rig) -> None:
    assert not rig.controller.again()


def test_chats_are_known_by_their_ids(rig: Rig) -> None:
    controller = rig.controller
    first = controller.current
    controller.ask("Hello?")
    rig.drain(100)
    controller.new_chat()
    second = controller.current
    assert second is not first
    controller.new_chat()
    assert controller.current is second
    controller.show_chat(first.id)
    assert controller.current is first
    assert list(controller.conversations) == [first.id, second.id]


@pytest.mark.parametrize(
    ("name", "value", "loads"),
    [("n_ctx", 512, 2), ("draft_backend", "cpu", 2), ("think", True, 1), ("top_k", 7, 1)],
)
def test_only_what_needs_it_loads_again(
    rig: Rig, wait_until: WaitUntil, name: str, value: object, loads: int
) -> None:
    rig.flow.change(**{name: value})
    wait_until(lambda: len(rig.models.opened) == loads)


def test_the_other_device_is_loaded_once(rig: Rig, wait_until: WaitUntil) -> None:
    assert rig.loader.model is not None
    assert rig.loader.model.backend == "gpu"
    rig.controller.choose_device("gpu")
    assert not rig.loader.activity
    rig.controller.choose_device("cpu")
    rig.controller.choose_device("cpu")
    wait_until(lambda: len(rig.models.opened) == 2)
    rig.bridge._timer.start()
    wait_until(lambda: not rig.loader.activity)
    assert len(rig.models.opened) == 2
    assert rig.loader.model.backend == "cpu"
