"""The chip tells what the engine did."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QObject

from app.engine import LoadedModel, Origin, Plain, RoundRecord, WidthReason
from app.engine.fake import FAKE_CPU
from app.ui.look.theme import Theme
from app.ui.meters.model import Meters
from app.ui.window.header import StateChip
from app.ui.window.state import Level, State, state_of
from tests.ui.meters.test_meters import record

COPIED = replace(record(3), origin=Origin.LOOKUP)


def model(block: int = 16, fallback: str = "") -> LoadedModel:
    return LoadedModel(
        "m", 1, 1, "F32", "cpu", FAKE_CPU, 8, 8, 4096, 4096, block, fallback=fallback
    )


STEP = replace(record(0, drafted=0), reason=WidthReason.PLAIN)


@pytest.fixture
def meters(owner: QObject) -> Meters:
    return Meters(owner)


def show(
    meters: Meters, loaded: LoadedModel | None, *rounds: RoundRecord, plain: float | None = None
) -> Meters:
    meters.set_model(loaded)
    meters.set_plain(Plain(plain))
    meters.counters.add(list(rounds))
    return meters


@pytest.mark.parametrize(
    ("level", "text", "loaded", "rounds", "plain"),
    [
        (Level.OFF, "No model", None, [], None),
        (Level.OFF, "DFlash off", model(block=0), [], None),
        (Level.OFF, "DFlash ready", model(), [], None),
        (Level.OFF, "DFlash off", model(), [record(0, drafted=0)], 50.0),
        (Level.ON, "DFlash on", model(), [record(3)], None),
        (Level.ON, "DFlash on", model(), [record(3)], 90.0),  # a plain step that was held up
        (Level.ON, "DFlash on ×4.0", model(), [record(3)], 100.0),
        (Level.ON, "DFlash on ×0.50", model(), [record(0)], 200.0),
        (Level.ON, "Drafts from the chat ×4.0", model(), [COPIED], 100.0),
        (Level.ON, "Drafts from the chat ×4.0", model(block=0), [COPIED], 100.0),
        (Level.OFF, "DFlash paused", model(), [record(3), *[STEP] * 8], 100.0),
        (Level.OFF, "DFlash paused", model(), [STEP], 100.0),
        (Level.ON, "DFlash on ×4.0 · CPU", model(fallback="No GPU."), [record(3)], 100.0),
    ],
)
def test_states(
    meters: Meters,
    level: Level,
    text: str,
    loaded: LoadedModel | None,
    rounds: list[RoundRecord],
    plain: float | None,
) -> None:
    state = state_of(show(meters, loaded, *rounds, plain=plain))
    assert (state.level, state.text) == (level, text)
    assert state.about


def test_why_a_gpu_was_not_taken_is_told(meters: Meters) -> None:
    show(meters, model(fallback="No driver."), record(3), plain=100.0)
    assert state_of(meters).about.startswith("No driver. ")


def test_what_is_being_done_comes_first(meters: Meters) -> None:
    state = state_of(show(meters, model()), "Loading the model … 40%")
    assert (state.level, state.text) == (Level.BUSY, "Loading the model … 40%")


def test_a_narrow_chip_tells_the_speed_up_or_nothing(look: Theme) -> None:
    """A word that is cut tells nothing."""
    chip = StateChip()
    chip.show_state(State(Level.ON, "DFlash on ×2.4", ""))
    whole = chip.fontMetrics().horizontalAdvance("DFlash on ×2.4")
    assert chip.text_within(whole) == "DFlash on ×2.4"
    assert chip.text_within(whole - 1) == "×2.4"
    assert chip.text_within(4) == ""
    chip.show_state(State(Level.OFF, "DFlash ready", ""))
    assert chip.text_within(whole - 30) == ""
