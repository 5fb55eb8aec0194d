"""Input methods of a real desktop: what they compose comes in, and Enter within it never sends.

Hangul, since it hands the Enter that ends a composition on to the program: ibus with its own
engine, and fcitx5 behind its ibus front end, which Qt speaks to as well.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ui.desktop.conftest import OpenDesktop
from tests.ui.desktop.session import Desktop, Window, found, until

_FCITX_PROFILE = """
[Groups/0]
Name=Default
Default Layout=us
DefaultIM=hangul
[Groups/0/Items/0]
Name=hangul
Layout=
[GroupOrder]
0=Default
"""


def ask(desktop: Desktop, *command: str) -> str:
    done = subprocess.run(
        command, env=desktop.environment, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def with_ibus(desktop: Desktop) -> Callable[[], None]:
    memory = found("ibus-memconf")
    assert memory is not None
    desktop.start(["ibus-daemon", "--panel=disable", "--desktop=none", f"--config={memory}"])
    address_of(desktop)

    def switch_on() -> None:
        until(
            lambda: ask(desktop, "ibus", "engine", "hangul") or ask(desktop, "ibus", "engine"),
            "the engine",
        )
        desktop.xdotool("key", "Hangul")  # it begins with Latin letters

    return switch_on


def with_fcitx(desktop: Desktop) -> Callable[[], None]:
    profile = Path(desktop.environment["XDG_CONFIG_HOME"], "fcitx5", "profile")
    profile.parent.mkdir(parents=True)
    profile.write_text(_FCITX_PROFILE, encoding="utf-8")
    shown = "wayland,waylandim,notifications,notificationitem,kimpanel,classicui,cloudpinyin"
    desktop.start(["fcitx5", f"--disable={shown}"])
    address_of(desktop)

    def switch_on() -> None:
        def composes() -> bool:
            ask(desktop, "fcitx5-remote", "-s", "hangul")
            ask(desktop, "fcitx5-remote", "-o")
            return ask(desktop, "fcitx5-remote", "-n") == "hangul"

        until(composes, "the input method")

    return switch_on


def address_of(desktop: Desktop) -> None:
    """Qt looks for it once, when it starts."""
    config = Path(desktop.environment["XDG_CONFIG_HOME"])
    until(lambda: any(config.glob("ibus/bus/*")), "the address of the input method")


def compose(window: Window) -> None:
    """한 from its three letters; the first may come before the input method listens."""
    window.keys("g", "k", "s")
    window.wait(lambda s: s["composing"], "a composition")


@pytest.mark.parametrize(
    ("programs", "begin"),
    [
        (("ibus-daemon", "ibus-memconf", "ibus-engine-hangul"), with_ibus),
        (("fcitx5", "fcitx5-remote", "share/fcitx5/inputmethod/hangul.conf"), with_fcitx),
    ],
    ids=["ibus", "fcitx5"],
)
def test_what_is_composed_comes_in_and_enter_within_it_sends_nothing(
    open_desktop: OpenDesktop,
    programs: tuple[str, ...],
    begin: Callable[[Desktop], Callable[[], None]],
) -> None:
    desktop = open_desktop(*programs)
    desktop.environment["QT_IM_MODULE"] = "ibus"
    switch_on = begin(desktop)
    window = desktop.window()
    switch_on()
    compose(window)
    assert window.state["text"] == ""
    window.keys("Return")
    state = window.wait(lambda s: not s["composing"], "the end of the composition")
    window.wait(lambda s: s["text"].strip() == "한", "what was composed")
    assert state["messages"] == []
    # Another letter: whatever Enter did has been done by then.
    window.keys("r")
    window.wait(lambda s: s["composing"], "another composition")
    assert window.state["messages"] == []
    window.keys("Return")
    window.wait(lambda s: not s["composing"], "the end of that")
    time.sleep(0.2)  # nobody presses it twice in less
    window.keys("Return")
    state = window.wait(lambda s: s["messages"], "the question")
    assert state["messages"][0].replace("\n", "") == "한ㄱ"
