"""The chip tells what the engine did."""

from __future__ import annotations

import pytest

from app.engine import LoadedModel
from app.engine.fake import FAKE_CPU
from app.ui.meters.model import MeterModel
from app.ui.window.state import Level, state_of
from tests.ui.meters.test_meters import record


def model(block: int = 16, fallback: str = "") -> LoadedModel:
    return LoadedModel(
        "m", 1, 1, "F32", "cpu", FAKE_CPU, 8, 8, 4096, 4096, block, fallback=fallback
    )


def meters(accepted: int, plain: float | None, drafted: int = 7) -> MeterModel:
    result = MeterModel(plain)
    result.add([record(accepted, drafted)])
    return result


@pytest.mark.parametrize(
    ("level", "text", "loaded", "shown"),
    [
        (Level.OFF, "No model", None, MeterModel()),
        (Level.OFF, "DFlash off", model(block=0), MeterModel()),
        (Level.OFF, "DFlash ready", model(), MeterModel()),
        (Level.OFF, "DFlash off", model(), meters(0, 50.0, drafted=0)),
        (Level.ON, "DFlash on", model(), meters(3, None)),
        (Level.ON, "DFlash on ×4.0", model(), meters(3, 100.0)),
        (Level.WARN, "DFlash on ×0.50", model(), meters(0, 200.0)),
        (Level.ON, "DFlash on ×4.0 · CPU", model(fallback="No GPU."), meters(3, 100.0)),
    ],
)
def test_states(level: Level, text: str, loaded: LoadedModel | None, shown: MeterModel) -> None:
    state = state_of(loaded, shown)
    assert (state.level, state.text) == (level, text)
    assert state.about


def test_a_gpu_that_was_asked_for_and_not_used_is_a_warning() -> None:
    state = state_of(model(fallback="No driver."), meters(3, 100.0), asked="gpu")
    assert state.level is Level.WARN
    assert state.text == "DFlash on ×4.0 · fell back to CPU"
    assert state.about.startswith("No driver.")


def test_what_is_being_done_comes_first() -> None:
    state = state_of(model(), MeterModel(), "Loading the model … 40%")
    assert (state.level, state.text) == (Level.BUSY, "Loading the model … 40%")
