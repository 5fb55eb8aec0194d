"""Settings are taken over when they can be used, and refused in place otherwise."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Qt
from pytestqt.qtbot import QtBot

from app import paths
from app.engine import DeviceInfo, LoadedModel
from app.engine.fake import FAKE_CPU, FAKE_GPU
from app.settings import Settings
from app.ui.look.theme import Theme
from app.ui.settings.flow import SettingsFlow
from app.ui.settings.sheet import SettingsSheet


@pytest.fixture
def flow(owner: QObject) -> SettingsFlow:
    return SettingsFlow(Settings(), lambda _: None, owner)


@pytest.fixture
def sheet(qtbot: QtBot, look: Theme, flow: SettingsFlow) -> SettingsSheet:
    result = SettingsSheet(flow)
    qtbot.addWidget(result)
    result.show()
    return result


def enter(qtbot: QtBot, sheet: SettingsSheet, key: str, text: str) -> None:
    field = sheet.numbers[key].field
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


def test_a_value_is_taken_over(qtbot: QtBot, sheet: SettingsSheet, flow: SettingsFlow) -> None:
    flow.change(verify="host-sample")
    enter(qtbot, sheet, "temperature", "1,25")
    assert flow.current == Settings(verify="host-sample", temperature=1.25)


def test_what_changes_elsewhere_is_shown(sheet: SettingsSheet, flow: SettingsFlow) -> None:
    flow.change(think=True, theme="dark", top_k=7, verify="gpu-sample")
    assert sheet.think.choice() == "on"
    assert sheet.theme.choice() == "dark"
    assert sheet.numbers["top_k"].field.text() == "7"
    assert sheet.verify.choice() == "gpu-sample"


@pytest.mark.parametrize(
    ("key", "text", "range_"),
    [
        ("n_ctx", "17", "256 to 262144"),
        ("block", "0", "1 to 64"),
        ("top_p", "1.5", "above 0, up to 1"),
        ("max_tokens", "many", "1 to 262144"),
    ],
)
def test_a_bad_value_is_refused_where_it_stands(
    qtbot: QtBot, sheet: SettingsSheet, flow: SettingsFlow, key: str, text: str, range_: str
) -> None:
    flow.change(verify="host-sample")
    before = flow.current
    row = sheet.numbers[key]
    stood = row.field.text()
    enter(qtbot, sheet, key, text)
    assert flow.current == before
    assert row.field.text() == stood  # what cannot be used does not stand
    assert f"“{text}” was not taken" in row.note.text()
    assert range_ in row.note.text()
    assert row.note.property("kind") == "error"
    assert range_ in row.field.accessibleDescription()
    enter(qtbot, sheet, key, str(getattr(Settings(), key) or {"n_ctx": 512}.get(key, 8)))
    assert row.note.property("kind") == "caption"


def test_nothing_means_auto(qtbot: QtBot, sheet: SettingsSheet, flow: SettingsFlow) -> None:
    enter(qtbot, sheet, "block", "8")
    assert flow.current.block == 8
    sheet.numbers["block"].field.clear()
    qtbot.keyClick(sheet.numbers["block"].field, Qt.Key.Key_Return)
    assert flow.current.block is None


@pytest.mark.parametrize("way", ["gpu-sample", "host-sample", "greedy"])
def test_every_way_to_verify_can_be_chosen(
    qtbot: QtBot, sheet: SettingsSheet, flow: SettingsFlow, way: str
) -> None:
    button = sheet.verify.button(way)
    assert button.isEnabled()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert sheet.verify.choice() == way
    assert flow.current.verify == way


MODEL = LoadedModel("m", 1, 1, "F16", "cpu", FAKE_CPU, 8, 8, n_ctx=4096, n_vocab=10, block=16)


def test_nothing_that_was_typed_stands_when_it_is_opened_again(
    qtbot: QtBot, sheet: SettingsSheet
) -> None:
    field = sheet.numbers["n_ctx"].field
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, "17")
    assert sheet.numbers["n_ctx"].note.property("kind") == "error"
    sheet.hide()
    sheet.show()
    assert field.text() == ""
    assert field.placeholderText() == "what fits"
    assert sheet.numbers["n_ctx"].note.property("kind") == "caption"


def test_sampling_plays_no_part_under_greedy(sheet: SettingsSheet, flow: SettingsFlow) -> None:
    for key in ("temperature", "top_k", "top_p", "min_p", "seed"):
        assert not sheet.numbers[key].field.isEnabled()
        assert "Plays no part" in sheet.numbers[key].field.toolTip()
        assert not sheet.numbers[key].note.isVisibleTo(sheet)  # it would be said five times
    flow.change(verify="gpu-sample")
    assert sheet.numbers["top_k"].field.isEnabled()
    assert sheet.numbers["top_k"].note.isVisibleTo(sheet)
    flow.change(temperature=0.0)
    assert sheet.numbers["temperature"].field.isEnabled()
    assert not sheet.numbers["top_k"].field.isEnabled()


def test_penalties_count_under_greedy_and_a_window_needs_one(
    sheet: SettingsSheet, flow: SettingsFlow
) -> None:
    window = sheet.numbers["penalty_last_n"]
    assert sheet.numbers["presence_penalty"].field.isEnabled()
    assert not window.field.isEnabled()
    assert "no penalty is chosen" in window.note.text()
    for name, value, none in (
        *(("presence_penalty", 1.5, 0.0), ("frequency_penalty", -0.5, 0.0)),
        ("repeat_penalty", 1.1, 1.0),
    ):
        flow.change(**{name: value})
        assert window.field.isEnabled()
        flow.change(**{name: none})
        assert not window.field.isEnabled()


def test_what_is_not_used_as_it_was_chosen_says_so(
    sheet: SettingsSheet, flow: SettingsFlow
) -> None:
    flow.change(block=64, n_ctx=262_144)
    sheet.set_model(replace(MODEL, n_ctx=32_768))
    assert "16 are used" in sheet.numbers["block"].note.text()
    assert "32,768 are in use" in sheet.numbers["n_ctx"].note.text()
    flow.change(block=8, n_ctx=32_768)
    assert sheet.numbers["block"].note.text() == "Tokens checked in one step, at most."
    sheet.set_model(replace(MODEL, block=0))
    assert "without a drafter" in sheet.numbers["block"].note.text()


def test_a_gpu_that_is_not_there_says_why(sheet: SettingsSheet) -> None:
    sheet.set_devices((FAKE_CPU, DeviceInfo("GPU", "No GPU", "gpu", 0, 0, False, "No driver.")))
    assert not sheet.drafter.button("gpu").isEnabled()
    assert sheet.drafter.button("gpu").toolTip() == "No driver."
    sheet.set_devices((FAKE_CPU, FAKE_GPU))
    assert sheet.drafter.button("gpu").isEnabled()


@pytest.mark.parametrize("title", ["Answers", "Engine", "Window"])
def test_a_group_is_reset_alone(sheet: SettingsSheet, flow: SettingsFlow, title: str) -> None:
    changed = {"top_k": 7, "think": True, "block": 4, "threads": 2, "theme": "dark", "zoom": 150}
    changed |= {"kv_type": "q8_0", "loop_guard": False, "lookup": False}
    flow.change(**changed)
    sheet.groups[title].reset.click()
    first = Settings()
    back = {key for key, value in changed.items() if getattr(flow.current, key) != value}
    assert (
        back
        == {
            "Answers": {"top_k", "think", "loop_guard"},
            "Engine": {"block", "lookup", "threads", "kv_type"},
            "Window": {"theme", "zoom"},
        }[title]
    )
    assert all(getattr(flow.current, key) == getattr(first, key) for key in back)


def test_a_folder_that_will_move_says_so(
    sheet: SettingsSheet, flow: SettingsFlow, tmp_path: Path
) -> None:
    row = sheet.folders["data"]
    assert row.note.isHidden()
    flow.change(data=str(tmp_path / "there"))
    assert "when Slipstream starts again" in row.note.text()
    assert row.place.whole() == str(paths.data())


def test_a_folder_in_the_users_home_that_is_the_one_in_use_says_nothing(
    sheet: SettingsSheet, flow: SettingsFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "HOME" if os.name == "posix" else "USERPROFILE"
    monkeypatch.setenv(name, str(paths.data().parent))
    flow.change(data="~/data")
    assert sheet.folders["data"].note.isHidden()


def test_an_assistive_program_chooses_by_toggling(sheet: SettingsSheet, flow: SettingsFlow) -> None:
    """It clicks nothing: see Qt's accessible actions of what can be checked."""
    told: list[str] = []
    sheet.theme.chosen.connect(told.append)
    sheet.theme.button("dark").toggle()
    assert flow.current.theme == "dark"
    sheet.theme.button("light").click()
    assert told == ["dark", "light"]
