"""What a screen reader is to say; that it comes to its bus is seen in `tests/ui/desktop`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QWidget

from app.engine import Script
from app.ui.look import announce
from app.ui.look.icons import IconButton
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine

Ask = Callable[[MainWindow, str], None]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Each with whether it is urgent."""
    result: list[tuple[str, bool]] = []

    def say(where: QWidget, text: str, *, urgent: bool = False) -> None:
        result.append((text, urgent))

    monkeypatch.setattr(announce, "say", say)
    return result


def test_messages_are_said_and_errors_at_once(
    open_window: OpenWindow, said: list[tuple[str, bool]]
) -> None:
    window = open_window()
    said.clear()
    window.notices.add("The chat is in `a.md`.", "It is whole.")
    window.notices.add("The disk is full.", "Make room.", level="error")
    assert said == [
        ("The chat is in “a.md”. It is whole.", False),
        ("The disk is full. Make room.", True),
    ]


def test_an_answer_is_said_to_begin_and_to_end(
    open_window: OpenWindow, ask: Ask, said: list[tuple[str, bool]]
) -> None:
    window = open_window(BatchEngine(Script(text="one two three", reasoning="hm"), batch=1))
    said.clear()
    ask(window, "Count")
    assert said == [("The answer begins.", False), ("The answer has ended.", False)]


def test_an_answer_of_another_chat_is_said_with_its_name(
    open_window: OpenWindow, wait_until: WaitUntil, said: list[tuple[str, bool]]
) -> None:
    window = open_window(BatchEngine(Script(text="one two three"), batch=1))
    said.clear()
    assert window.controller.ask("Count")
    window.controller.new_chat()
    wait_until(lambda: not window.controller.answers.all)
    assert said[-1] == ("“Count”: The answer has ended.", False)


def test_what_is_copied_is_said(
    open_window: OpenWindow, ask: Ask, said: list[tuple[str, bool]]
) -> None:
    window = open_window(BatchEngine(Script(text="So:\n\n```\ncode\n```\n")))
    ask(window, "Show")
    said.clear()
    for button in window.chats.view.widget().findChildren(IconButton):
        if button.accessibleName().startswith("Copy") and button.isVisible():
            button.click()
    window.actions_.copy_answer.trigger()
    assert sorted(text for text, _ in said) == [
        "The answer is copied.",
        "The answer is copied.",
        "The code is copied.",
        "The question is copied.",
    ]


def test_what_is_found_is_said(
    open_window: OpenWindow, ask: Ask, said: list[tuple[str, bool]]
) -> None:
    window = open_window(BatchEngine(Script(text="one two one")))
    ask(window, "Count")
    window.actions_.find.trigger()
    said.clear()
    window.finder.field.setText("one")
    window.finder.go(1)
    window.finder.field.setText("three")
    assert said == [("2 of 2", False), ("1 of 2", False), ("Nothing found", False)]
