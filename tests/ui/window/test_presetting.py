"""What one chat has of its own, and presets that bring it to any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QTextCursor
from pytestqt.qtbot import QtBot

from app import paths, presets
from app.presets import ChatOptions
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path))


def options(window: MainWindow) -> ChatOptions:
    return ChatOptions.of_json(window.controller.current.options)


def test_a_system_prompt_belongs_to_its_chat(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    window = open_window()
    window.composer.options.click()
    assert window.chat_sheet.isVisible()
    qtbot.keyClicks(window.chat_sheet.system, "Be terse.")
    window.chat_sheet.think.button("on").click()
    window.chat_sheet.keep()
    assert options(window) == ChatOptions("Be terse.").choose("think", True)
    wait_until(lambda: window.controller.ask("Hello?"))
    window.actions_.new_chat.trigger()
    assert options(window) == ChatOptions()
    assert window.chat_sheet.system.toPlainText() == ""
    assert window.chat_sheet.think.choice() == ""
    assert window.chat_sheet.think.button("").isChecked()  # "As set" is a choice too


def test_a_preset_is_saved_used_and_removed(open_window: OpenWindow, qtbot: QtBot) -> None:
    window = open_window()
    window.actions_.chat_options.trigger()
    sheet = window.chat_sheet
    qtbot.keyClicks(sheet.system, "Be terse.")
    assert not sheet.save.isEnabled()  # it has no name
    qtbot.keyClicks(sheet.name, "Terse")
    sheet.save.click()
    assert not sheet.save.isEnabled()
    saved = presets.load(paths.presets_file()).presets
    assert saved["Terse"].system == "Be terse."
    sheet.own.reset.click()
    assert options(window) == ChatOptions()
    sheet._list.itemAt(0).widget().layout().itemAt(0).widget().click()
    assert options(window).system == "Be terse."
    assert options(window).preset == "Terse"
    assert sheet._uses["Terse"].isChecked()
    sheet._uses["Terse"].click()
    assert sheet._uses["Terse"].isChecked()  # it is in use still
    sheet.preset_removed.emit("Terse")
    assert presets.load(paths.presets_file()).presets == {}
    assert options(window).system == "Be terse."  # the chat keeps what it has
    assert "“Terse” is deleted" in window.notices.all[-1].message
    window.actions_.undo.trigger()
    assert presets.load(paths.presets_file()).presets == saved
    assert sheet._uses["Terse"].isChecked()
    assert window.notices.all == []
    sheet.preset_removed.emit("Terse")
    qtbot.keyClicks(sheet.name, "Terse")
    sheet.system.setPlainText("Be brief.")
    sheet.save.click()
    window.actions_.undo.trigger()
    assert presets.load(paths.presets_file()).presets["Terse"].system == "Be brief."
    assert "was saved since" in window.notices.all[-1].message


def test_a_value_that_cannot_be_is_refused(open_window: OpenWindow, qtbot: QtBot) -> None:
    window = open_window()
    window.actions_.chat_options.trigger()
    row = window.chat_sheet.numbers["top_p"]
    row.field.setFocus()
    qtbot.keyClicks(row.field, "7")
    row.field.editingFinished.emit()
    assert options(window) == ChatOptions()
    assert "was not taken" in row.note.text()


def test_a_broken_file_of_presets_is_said(open_window: OpenWindow) -> None:
    paths.presets_file().parent.mkdir(parents=True, exist_ok=True)
    paths.presets_file().write_text("{")
    window = open_window()
    window.actions_.chat_options.trigger()
    assert "presets.json.broken" in window.notices.all[-1].message


def test_the_composer_thinks_as_its_chat_does(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    engine = BatchEngine()
    window = open_window(engine)
    think = window.composer._think
    think.click()
    assert window.flow.current.think  # for all chats: this one has no choice of its own
    window.controller.set_options(ChatOptions().choose("think", False))
    assert not think.isChecked()
    window.controller.ask("One")
    wait_until(lambda: not window.controller.busy)
    first = window.controller.current
    window.actions_.new_chat.trigger()
    assert think.isChecked()
    window.controller.ask("Two")
    wait_until(lambda: not window.controller.busy)
    window.controller.show_chat(first.id)
    assert not think.isChecked()
    think.click()
    assert options(window).get("think") is True
    assert window.flow.current.think
    window.flow.change(think=False)
    assert think.isChecked()
    window.controller.ask("Three")
    wait_until(lambda: len(engine.asked) == 3)
    assert [ask.params.think for ask in engine.asked] == [False, True, True]


def test_what_is_being_written_stays_with_its_chat(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    window = open_window()
    assert window.controller.ask("Hello?")
    wait_until(lambda: not window.controller.busy)
    first = window.controller.current
    window.actions_.chat_options.trigger()
    sheet, row = window.chat_sheet, window.chat_sheet.numbers["temperature"]
    qtbot.keyClicks(sheet.system, "Be terse.")
    row.field.setFocus()
    qtbot.keyClicks(row.field, "0.7")
    window.actions_.new_chat.trigger()
    assert ChatOptions.of_json(first.options) == ChatOptions("Be terse.").choose("temperature", 0.7)
    assert options(window) == ChatOptions()
    assert row.field.text() == ""
    # So it does where the sheet was closed in between.
    window.controller.show_chat(first.id)
    sheet.system.moveCursor(QTextCursor.MoveOperation.End)
    qtbot.keyClicks(sheet.system, " And kind.")
    window._close_sheet()
    window.actions_.new_chat.trigger()
    wait_until(lambda: not sheet._pause.isActive())
    assert ChatOptions.of_json(first.options).system == "Be terse. And kind."
    assert options(window) == ChatOptions()


def test_a_system_prompt_that_was_just_written_is_kept_at_the_end(
    open_window: OpenWindow, qtbot: QtBot
) -> None:
    window = open_window()
    window.actions_.chat_options.trigger()
    qtbot.keyClicks(window.chat_sheet.system, "Be terse.")
    window.close()
    assert options(window).system == "Be terse."


@pytest.mark.parametrize("typed", ["0.7", "7"])
def test_a_reset_and_a_preset_take_the_place_of_a_number_that_is_typed(
    open_window: OpenWindow, qtbot: QtBot, typed: str
) -> None:
    window = open_window()
    window.actions_.chat_options.trigger()
    sheet, row = window.chat_sheet, window.chat_sheet.numbers["top_p"]
    preset = ChatOptions(preset="Usual").choose("top_p", 0.5)
    sheet.show_presets({"Usual": preset})
    for button, told in ((sheet.own.reset, ChatOptions()), (sheet._uses["Usual"], preset)):
        row.field.setFocus()
        row.field.selectAll()
        qtbot.keyClicks(row.field, typed)
        button.click()
        assert row.field.text() == f"{told.get('top_p') or ''}"
        window.composer.field.setFocus()
        assert options(window) == told
