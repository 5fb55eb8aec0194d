"""The list of models: each has its row, and the button names the chosen one at once."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QCursor, QHideEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel
from pytestqt.qtbot import QtBot

from app.library import ModelState, ModelStatus
from app.ui.look.theme import Theme
from app.ui.models.picker import ModelPicker
from tests.ui.fakes import FakeModels

OWN = ModelStatus("own", "A model of mine", ModelState.READY)


@pytest.fixture
def picker(qtbot: QtBot, look: Theme) -> ModelPicker:
    result = ModelPicker()
    qtbot.addWidget(result)
    return result


def test_the_chosen_model_is_named_before_the_list_has_come(picker: ModelPicker) -> None:
    picker.set_in_use("demo")
    assert picker.text() == "Built-in guide · tiny demo model"
    picker.set_in_use("/models/mine")
    assert picker.text() == "mine"
    picker.set_models((*FakeModels().models(), OWN))
    picker.set_in_use("own")
    assert picker.text() == "A model of mine"
    assert picker.accessibleName() == "Model: A model of mine"
    picker.set_in_use("")  # it could not be loaded: it is named, and can be chosen again
    assert picker.text() == "A model of mine"
    column = picker.popup._column
    rows = [column.itemAt(at).widget() for at in range(column.count())]
    assert not any(getattr(row, "in_use", False) for row in rows)


def test_each_model_has_room_for_what_is_said_of_it(picker: ModelPicker) -> None:
    picker.set_models((*FakeModels().models(), OWN))
    rows = [b for b in picker.popup.findChildren(QAbstractButton) if b.findChildren(QLabel)]
    assert len(rows) == 3
    for row in rows:
        lines = [label for label in row.findChildren(QLabel) if label.isVisibleTo(row)]
        assert row.minimumHeight() >= sum(label.sizeHint().height() for label in lines) > 0


def test_a_long_name_and_a_path_are_read_whole(picker: ModelPicker) -> None:
    name = "mine_" * 20
    gone = ModelStatus("gone", name, ModelState.BROKEN, f"`/models/{name}/x.gguf` is damaged.")
    picker.set_models((gone,))
    picker.popup.grab()  # which has it laid out
    labels = picker.popup.findChildren(QLabel)
    assert [label.text().replace("\u200b", "") for label in labels] == [
        name,
        f"“/models/{name}/x.gguf” is damaged.",
    ]
    for label in labels:
        assert label.width() >= label.minimumSizeHint().width()
        assert label.height() >= label.heightForWidth(label.width())


def test_its_corners_need_no_compositor(picker: ModelPicker) -> None:
    """Behind a translucent corner is black where nothing composes the screen."""
    picker.set_models(FakeModels().models())
    popup = picker.popup
    popup.resize(300, 200)
    popup.grab()  # which has it laid out; shown, a popup would want what offscreen has not
    assert not popup.testAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
    for corner in (popup.rect().topLeft(), popup.rect().bottomRight()):
        assert not popup.mask().contains(corner)
    assert popup.mask().contains(popup.rect().center())


def test_one_that_is_not_here_is_wanted_and_not_chosen(picker: ModelPicker, qtbot: QtBot) -> None:
    picker.set_models(FakeModels().models())
    rows = {b.accessibleName(): b for b in picker.popup.findChildren(QAbstractButton)}
    get = next(button for name, button in rows.items() if name.startswith("Get Qwen3.5-4B"))
    assert get.isEnabled()
    with qtbot.assertNotEmitted(picker.chosen), qtbot.waitSignal(picker.wanted) as wanted:
        get.click()
    assert wanted.args == ["qwen3.5-4b"]
    with qtbot.waitSignal(picker.managed):
        rows["All models, or open one from this machine"].click()


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_keys_choose_in_the_list(picker: ModelPicker, qtbot: QtBot, key: Qt.Key) -> None:
    picker.set_models((*FakeModels().models(), OWN))
    picker.set_in_use("demo")
    popup = picker.popup
    popup.choose_row()  # as it does when it is shown, which wants what offscreen has not
    for expected in ("Built-in guide", "Get Qwen3.5-4B", "A model of mine"):
        row = popup.focusWidget()
        assert row is not None
        assert row.accessibleName().startswith(expected)
        QTest.keyClick(row, Qt.Key.Key_Down)
    QTest.keyClick(popup.focusWidget(), Qt.Key.Key_Up)
    with qtbot.waitSignal(picker.chosen) as chosen:
        QTest.keyClick(popup.focusWidget(), key)
    assert chosen.args == ["own"]


def test_its_button_is_no_longer_lit_when_it_has_closed(picker: ModelPicker) -> None:
    picker.setAttribute(Qt.WidgetAttribute.WA_UnderMouse)
    picker.move(QCursor.pos() + QPoint(500, 500))
    picker.popup.hideEvent(QHideEvent())  # shown, it would want what offscreen has not
    assert not picker.underMouse()
    assert not picker.isDown()
