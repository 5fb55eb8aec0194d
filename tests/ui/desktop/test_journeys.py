"""What people do most, with real keys and a real mouse, on screens as people have them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.desktop.conftest import OpenDesktop
from tests.ui.desktop.session import Desktop, Window

SCREENS = [
    pytest.param((1280, 800), 1.0, id="1280x800"),
    pytest.param((1366, 768), 1.5, id="1366x768 at 150 %"),
    pytest.param((400, 700), 1.0, id="400x700"),
]


def show_chats(window: Window) -> None:
    """☰, where they are not docked."""
    if not window.state["seen"]["chats"]:
        window.click("Show or hide the chats (Ctrl+B)")
        window.wait(lambda s: s["seen"]["chats"], "the chats")


def ask(window: Window, text: str) -> dict[str, Any]:
    window.type(text)
    window.keys("Return")
    return window.wait(
        lambda s: s["messages"][:1] == [text] and s["messages"][1:], f"an answer to {text}"
    )


@pytest.mark.parametrize(("size", "scale"), SCREENS)
def test_a_day_with_it(open_desktop: OpenDesktop, size: tuple[int, int], scale: float) -> None:
    desktop = open_desktop(size=size, scale=scale)
    window = desktop.window("--words", "4000")
    state = window.state
    assert state["size"][0] <= state["screen"][0]
    assert state["size"][1] <= state["screen"][1]
    assert state["focus"] == "Your message"

    # ask, and stop the answer
    ask(window, "First?")
    window.wait(lambda s: "word20" in s["messages"][1], "some of the answer")
    window.keys("Escape")
    state = window.wait(lambda s: not s["busy"], "the end of the answer")
    assert "word3999" not in state["messages"][1]

    # another chat, which goes on while the first is read
    window.keys("ctrl+n")
    window.wait(lambda s: not s["messages"], "an empty chat")
    ask(window, "Second?")
    show_chats(window)
    window.click("chat: First?")
    state = window.wait(lambda s: s["messages"][:1] == ["First?"], "the first chat")
    assert state["focus"] == "Your message"
    assert state["chats"] == ["Second?", "First?"]

    # find in it, and back to writing
    window.keys("ctrl+f")
    window.wait(lambda s: s["finding"] and s["focus"] == "Find in this chat", "the search")
    window.type("word7")
    window.keys("Return", "Escape")
    window.wait(lambda s: not s["finding"] and s["focus"] == "Your message", "its end")

    # a setting, and out again
    window.keys("ctrl+comma")
    window.wait(lambda s: s["sheet"] == "Settings", "the settings")
    window.keys("Escape")
    window.wait(lambda s: not s["sheet"], "no sheet")
    window.type("a draft")
    window.wait(lambda s: s["text"] == "a draft", "the draft")

    # rename, delete, undo
    show_chats(window)
    window.keys("F2")
    window.wait(lambda s: s["focus"] == "Name of the chat", "the field for the name")
    window.keys("ctrl+a")
    window.type("Renamed")
    window.keys("Return")
    window.wait(lambda s: "Renamed" in s["chats"], "the new name")
    if size[0] < 600:  # the chats float over the rest
        window.keys("Escape")
        window.wait(lambda s: not s["seen"]["chats"], "the chat below them")
    window.keys("ctrl+shift+BackSpace")
    window.wait(lambda s: s["chats"] == ["Second?"], "one chat less")
    window.click("Undo")
    window.wait(lambda s: s["chats"] == ["Second?", "Renamed"], "both chats")
    window.wait(lambda s: s["text"] == "a draft", "the draft, with its chat")
    assert window.process.poll() is None

    # and tomorrow
    window.keys("ctrl+q")
    assert window.process.wait(30) == 0
    window = desktop.window()
    state = window.wait(lambda s: len(s["chats"]) == 2, "the chats of yesterday")
    assert set(state["chats"]) == {"Second?", "Renamed"}
    assert state["messages"][:1] == ["First?"]
    assert state["text"] == "a draft"


def test_a_dark_desktop(open_desktop: OpenDesktop) -> None:
    """A click chooses the theme, on the sheet, which a click beside it closes."""
    desktop: Desktop = open_desktop()
    window = desktop.window()
    window.click("Settings (Ctrl+,)")
    window.wait(lambda s: s["sheet"] == "Settings", "the settings")
    window.click("Sampled")
    window.click("Ask: What is DFlash?")
    state = window.wait(lambda s: s["messages"][:1] == ["What is DFlash?"], "the question")
    assert not state["sheet"]
    assert state["focus"] == "Your message"
