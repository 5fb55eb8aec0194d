"""Settings are taken over when they can be used, and refused in place otherwise."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.settings import Settings
from app.ui.look.theme import Theme
from app.ui.settings.sheet import SettingsSheet


@pytest.fixture
def sheet(qtbot: QtBot, look: Theme) -> SettingsSheet:
    result = SettingsSheet(Settings())
    qtbot.addWidget(result)
    result.show()
    return result


def enter(qtbot: QtBot, sheet: SettingsSheet, key: str, text: str) -> None:
    field = sheet.numbers[key].field
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


def test_a_value_is_taken_over(qtbot: QtBot, sheet: SettingsSheet) -> None:
    with qtbot.waitSignal(sheet.changed) as caught:
        enter(qtbot, sheet, "temperature", "1,25")
    assert caught.args is not None
    assert caught.args[0].temperature == 1.25


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
    qtbot: QtBot, sheet: SettingsSheet, key: str, text: str, range_: str
) -> None:
    changes: list[Settings] = []
    sheet.changed.connect(changes.append)
    enter(qtbot, sheet, key, text)
    row = sheet.numbers[key]
    assert not changes
    assert range_ in row.note.text()
    assert row.note.property("kind") == "error"
    assert range_ in row.field.accessibleDescription()
    enter(qtbot, sheet, key, str(getattr(Settings(), key) or 8))
    assert row.note.property("kind") == "caption"


def test_nothing_means_auto(qtbot: QtBot, sheet: SettingsSheet) -> None:
    changes: list[Settings] = []
    sheet.changed.connect(changes.append)
    enter(qtbot, sheet, "block", "8")
    assert changes[-1].block == 8
    sheet.numbers["block"].field.clear()
    qtbot.keyClick(sheet.numbers["block"].field, Qt.Key.Key_Return)
    assert changes[-1].block is None


@pytest.mark.parametrize("way", ["gpu-sample", "host-sample", "greedy"])
def test_every_way_to_verify_can_be_chosen(qtbot: QtBot, sheet: SettingsSheet, way: str) -> None:
    button = sheet.verify.button(way)
    assert button.isEnabled()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert sheet.verify.choice() == way
