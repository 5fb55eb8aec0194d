"""Of several loads, the newest counts, from its first percentage to its end."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from PySide6.QtCore import QObject

from app.errors import ModelFileError, NoModelError
from app.jobs import CancelToken
from app.library import Pair
from app.loading import LoadChoice
from app.ui.bridge import EngineBridge
from app.ui.models.loading import Loader
from tests.ui.conftest import WaitUntil
from tests.ui.fakes import BatchEngine, FakeModels


@pytest.fixture
def bridge(owner: QObject) -> EngineBridge:
    result = EngineBridge(BatchEngine(batch=1), owner)
    result._timer.stop()  # a test drains
    return result


def test_a_model_is_opened_and_loaded(bridge: EngineBridge, wait_until: WaitUntil) -> None:
    loader = Loader(bridge, FakeModels(), bridge)
    activities: list[str] = []
    loader.changed.connect(lambda: activities.append(loader.activity))
    assert (loader.obstacle, loader.in_use) == ("No model is loaded", "")
    loader.load(LoadChoice())
    assert loader.in_use == "demo"  # on its way
    wait_until(lambda: loader.activity == "Loading the model …")
    for _ in range(4):
        bridge.drain()
    assert loader.model is not None
    assert (loader.obstacle, loader.in_use) == ("", "demo")
    assert activities[:3] == [
        "Preparing the model …",
        "Loading the model …",
        "Loading the model … 50%",
    ]


def test_percentages_of_a_cancelled_load_are_not_shown(
    bridge: EngineBridge, wait_until: WaitUntil
) -> None:
    loader = Loader(bridge, FakeModels(), bridge)
    loader.load(LoadChoice())
    wait_until(lambda: loader.activity == "Loading the model …")
    assert bridge._engine.step()  # type: ignore[attr-defined]  # half of it, not yet drained
    loader.load(LoadChoice(n_ctx=512))
    shown: list[str] = []
    loader.changed.connect(lambda: shown.append(loader.activity))
    for _ in range(3):
        bridge.drain()  # what the first one still tells
    assert not [activity for activity in shown if "%" in activity]
    assert loader.obstacle == "Preparing the model …"


def test_percentages_of_a_cancelled_preparation_are_not_shown(
    bridge: EngineBridge, wait_until: WaitUntil
) -> None:
    """They were sent before it was cancelled, and come after it."""
    reported = threading.Event()

    class Slow(FakeModels):
        def open(
            self,
            model: str,
            progress: Callable[[float], None] | None = None,
            cancel: CancelToken | None = None,
        ) -> Pair:
            if model == "slow" and progress and cancel:
                progress(0.25)
                reported.set()
                while not cancel.cancelled:
                    pass
            return super().open(model, progress, cancel)

    loader = Loader(bridge, Slow(), bridge)
    loader.load(LoadChoice("slow"))
    assert reported.wait(60)
    shown: list[str] = []
    loader.changed.connect(lambda: shown.append(loader.activity))
    loader.load(LoadChoice())
    wait_until(lambda: loader.activity == "Loading the model …")
    assert shown == ["Preparing the model …", "Loading the model …"]


def test_a_failure_leaves_no_model(bridge: EngineBridge, wait_until: WaitUntil) -> None:
    models = FakeModels()
    loader = Loader(bridge, models, bridge)
    errors: list[object] = []
    loader.failed.connect(errors.append)
    models.error = ModelFileError("Cut short.", remedy="Convert it again.")
    loader.load(LoadChoice())
    wait_until(lambda: errors == [models.error])
    assert loader.obstacle == "No model is loaded"
    assert loader.in_use == ""


def test_one_that_is_not_here_leaves_the_loaded_one_in_use(
    bridge: EngineBridge, wait_until: WaitUntil
) -> None:
    models = FakeModels()
    loader = Loader(bridge, models, bridge)
    loader.load(LoadChoice())
    wait_until(lambda: loader.activity == "Loading the model …")
    for _ in range(4):
        bridge.drain()
    models.error = NoModelError("It is not on this machine.", remedy="Get it.")
    loader.load(LoadChoice("qwen3.5-9b"))
    assert loader.in_use == "qwen3.5-9b"
    wait_until(lambda: not loader.activity)
    assert (loader.obstacle, loader.in_use) == ("", "demo")
