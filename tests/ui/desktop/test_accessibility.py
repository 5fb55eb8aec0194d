"""What a screen reader is told of the window, over the real accessibility bus."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ui.desktop.conftest import OpenDesktop
from tests.ui.desktop.session import Desktop, Window, until
from tests.ui.desktop.tree import Bus, Node

CONTROLS = {
    "push button", "check box", "radio button", "toggle button", "text", "entry", "list",
    "list item", "combo box", "menu item", "check menu item", "slider", "link", "spin button",
}  # fmt: skip
"""Roles of what a person can do something with."""


@pytest.fixture
def desktop(open_desktop: OpenDesktop) -> Desktop:
    desktop = open_desktop("at-spi-bus-launcher")
    desktop.environment["QT_LINUX_ACCESSIBILITY_ALWAYS_ON"] = "1"
    desktop.start(["at-spi-bus-launcher", "--launch-immediately"])
    return desktop


@pytest.fixture
def window(desktop: Desktop) -> Window:
    return desktop.window()


@pytest.fixture
def root(desktop: Desktop, window: Window) -> Iterator[Node]:
    bus = Bus(desktop.environment["DBUS_SESSION_BUS_ADDRESS"])
    applications = until(bus.applications, "the window on the accessibility bus")
    yield next(child for child in applications[0].children if child.name == "Slipstream")
    bus.close()


def wait_for(root: Node, name: str, role: str = "") -> Node:
    return until(lambda: root.find(name, role), f"{role} {name}")


def unnamed(root: Node) -> list[str]:
    """Controls on view that say nothing of themselves."""
    return [
        f"{node.role} {node.path}"
        for node in root.walk()
        if node.role in CONTROLS and "showing" in node.states and not node.name.strip()
    ]


def test_names_roles_and_states(window: Window, root: Node) -> None:
    assert not unnamed(root)
    field = wait_for(root, "Your message", "text")
    assert {"editable", "focused", "sensitive"} <= field.states
    send = wait_for(root, "Send (Enter)", "push button")
    assert "sensitive" not in send.states  # nothing is written
    window.type("Hello?")
    until(lambda: "sensitive" in send.states, "Send that can be pressed")
    assert field.text == "Hello?"

    think = wait_for(root, "Let the model think before it answers", "check box")
    assert "checked" not in think.states
    think.press()
    until(lambda: "checked" in think.states, "Think, checked")

    send.press()
    window.wait(lambda s: len(s["messages"]) == 2 and not s["busy"], "an answer")
    assert wait_for(root, "Your question").text == "Hello?"
    answer = wait_for(root, "Answer")
    assert "block-diffusion speculative decoding" in answer.text
    assert "editable" not in answer.states
    chats = wait_for(root, "Chats", "list")
    assert [child.name for child in chats.children] == ["Today", "Hello?"]
    assert "selected" in chats.children[1].states
    state = next(node for node in root.walk() if node.name.startswith("State: DFlash on"))
    assert "drafted tokens were accepted" in state.description
    assert not unnamed(root)


@pytest.mark.parametrize(
    ("opener", "title", "holds"),
    [
        ("Settings (Ctrl+,)", "Settings", "Theme: Dark"),
        ("This chat: system prompt, preset (Ctrl+P)", "This chat", "System prompt"),
    ],
)
def test_sheets_are_opened_and_used_over_the_bus(
    window: Window, root: Node, opener: str, title: str, holds: str
) -> None:
    wait_for(root, opener).press()
    sheet = wait_for(root, title, "panel")
    control = until(
        lambda: next((n for n in sheet.walk() if n.name == holds), None), f"{holds} in {title}"
    )
    assert "sensitive" in control.states
    assert not unnamed(root)
    if control.role == "check box":
        assert "checked" not in control.states
        control.press()
        window.wait(lambda s: s["theme"] == "dark", "another theme")
        until(lambda: "checked" in control.states, "the choice, checked")
    wait_for(root, f"Close: {title} (Esc)").press()
    window.wait(lambda s: not s["sheet"], "no sheet")


def test_the_menu_is_read_as_it_is_gone_through(
    desktop: Desktop, window: Window, root: Node
) -> None:
    """A menu is told by what gets the focus in it."""
    root.bus.watch_focus()
    wait_for(root, "Menu", "push button").press()
    told: dict[str, set[str]] = {}
    while "Quit" not in told and len(told) < 60:
        desktop.xdotool("key", "Down")
        node = root.bus.focused()
        if "menu item" in node.role:
            told[node.name] = node.states
    assert {"New chat", "Settings", "Help", "Quit"} <= told.keys()
    assert "checked" in told["Show chats"]
    assert "" not in told


def test_what_happens_is_said(window: Window, root: Node) -> None:
    wait_for(root, "Your message", "text")
    root.bus.watch_announcements()
    window.type("Hello?")
    window.keys("Return")
    said = [root.bus.announced()]
    while "ended" not in said[-1][0]:
        said.append(root.bus.announced())
    assert said == [("The answer begins.", False), ("The answer has ended.", False)]
    wait_for(root, "Copy the answer", "push button").press()
    assert root.bus.announced() == ("The answer is copied.", False)
