"""Notices go when they are no longer true, and have the button that mends what they tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from app.engine import Script
from app.errors import DeviceError, OutputError
from app.settings import Settings
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine

Ask = Callable[[MainWindow, str], None]


def notices(window: MainWindow) -> list[str]:
    return [n.message for n in window.notices.all]


def button(window: MainWindow, text: str) -> QAbstractButton:
    found = window.notices.findChildren(QAbstractButton)
    return next(b for b in found if b.text() == text and b.isVisibleTo(window))


def test_no_gpu_offers_the_cpu_and_goes_once_it_is_loaded(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    engine = BatchEngine()
    engine.script.load_error = DeviceError("No GPU can be used.", remedy="Choose the CPU.")
    window = open_window(engine, wait=False, backend="gpu")
    wait_until(lambda: notices(window) == ["No GPU can be used."])
    engine.script.load_error = None
    button(window, "Use the CPU").click()
    wait_until(lambda: window.header.chip.state.text == "DFlash ready")
    assert window.flow.current.backend == "cpu"
    assert notices(window) == []


def test_a_failed_load_is_told_once_however_often_it_is_tried(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    engine = BatchEngine()
    engine.script.load_error = DeviceError("Out of memory.", remedy="Close something.")
    window = open_window(engine, wait=False)
    for tries in range(1, 4):
        wait_until(lambda n=tries: len(engine.loads) == n and bool(notices(window)))
        assert notices(window) == ["Out of memory."]
        button(window, "Try again").click()


def test_a_lost_device_can_be_tried_again(open_window: OpenWindow, wait_until: WaitUntil) -> None:
    engine = BatchEngine()
    window = open_window(engine)
    engine.lose(DeviceError("The GPU is lost.", remedy="Load the model again."))
    wait_until(lambda: notices(window) == ["The GPU is lost."])
    assert window.header.chip.state.text == "No model"
    button(window, "Try again").click()
    wait_until(lambda: window.header.chip.state.text == "DFlash ready")
    assert notices(window) == []


def test_settings_that_are_saved_in_the_end(open_window: OpenWindow, wait_until: WaitUntil) -> None:
    disk: list[Settings] = []
    full = [True]

    def save(settings: Settings) -> None:
        if full:
            raise OutputError("The disk is full.", remedy="Make room.")
        disk.append(settings)

    window = open_window(save=save)
    window.flow.change(think=True)
    wait_until(lambda: notices(window) == ["The disk is full."])
    full.clear()
    button(window, "Try again").click()
    wait_until(lambda: bool(disk) and disk[-1].think)
    wait_until(lambda: notices(window) == [])


def test_a_full_chat_goes_on_without_its_oldest_messages(
    open_window: OpenWindow, ask: Ask, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    engine = BatchEngine(Script(text="word " * 50))
    window = open_window(engine, n_ctx=256)
    for number in range(4):
        ask(window, f"Question {number} ?")
    window.composer.field.insertPlainText("word " * 60)
    wait_until(window.composer.warning.isVisible)
    buttons = window.composer.findChildren(QAbstractButton)
    next(b for b in buttons if b.text() == "Drop oldest").click()
    wait_until(lambda: not window.composer.warning.isVisible())
    assert notices(window) == ["The model no longer reads the oldest 4 messages of this chat."]
    window.composer.send.click()
    wait_until(lambda: len(engine.asked) == 5 and not window.controller.busy)
    assert engine.asked[-1].chat[0].content == "Question 2 ?"
    button(window, "Have it read them again").click()
    assert notices(window) == []
    assert window.controller.current.start is None


@pytest.mark.parametrize("other", ["new", "back"])
def test_what_is_said_of_a_chat_is_seen_in_that_chat(
    open_window: OpenWindow, ask: Ask, other: str
) -> None:
    window = open_window()
    for text in ("One", "Two"):
        ask(window, text)
    first = window.controller.current
    window.controller.forget_oldest()
    assert len(notices(window)) == 1
    window.actions_.new_chat.trigger()
    assert notices(window) == []
    if other == "back":
        window.controller.show_chat(first.id)
        assert len(notices(window)) == 1
