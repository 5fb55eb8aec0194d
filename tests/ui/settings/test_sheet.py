"""Settings are taken over when they can be used, and refused in place otherwise."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QObject, Qt
from pytestqt.qtbot import QtBot

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
    enter(qtbot, sheet, "temperature", "1,25")
    assert flow.current == Settings(temperature=1.25)


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
    enter(qtbot, sheet, key, text)
    row = sheet.numbers[key]
    assert flow.current == Settings()
    assert range_ in row.note.text()
    assert row.note.property("kind") == "error"
    assert range_ in row.field.accessibleDescription()
    enter(qtbot, sheet, key, str(getattr(Settings(), key) or 8))
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
