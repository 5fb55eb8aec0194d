"""The window as it comes: the real engine, and the built-in guide answers."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app.engine import Engine
from app.library import Library
from app.settings import Settings
from app.ui.chat.welcome import SUGGESTIONS
from app.ui.look.theme import Theme
from app.ui.window.main_window import MainWindow
from tests.ui.shots import answered

BUILD = Path(__file__).resolve().parents[2] / "build" / "screenshots"


def test_the_guide_answers_in_the_window(qtbot: QtBot, look: Theme) -> None:
    library = Library.of_user()
    window = MainWindow(Engine(), library, Settings(backend="cpu"), lambda _: None, look)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    qtbot.waitUntil(lambda: window.meters.plain_tokens_per_s is not None, timeout=60_000)

    window.controller.ask("What is DFlash?")
    qtbot.waitUntil(lambda: bool(window.chats.view.answers), timeout=10_000)
    qtbot.waitUntil(lambda: answered(window), timeout=60_000)
    assert window.chats.view.answers[0].turn.text.startswith(
        "DFlash is a way to make a language model"
    )
    # How wide it drafts hangs on what else the machine does; that the guesses are right does not.
    totals = window.meters.counters.totals
    assert totals.drafted > 0
    assert totals.accepted >= 0.6 * totals.drafted

    for question, part in (("List the planets", "Saturn"), ("Tell me a short story", "lived in a")):
        window.controller.new_chat()
        window.controller.ask(question)
        qtbot.waitUntil(lambda: bool(window.chats.view.answers), timeout=10_000)
        qtbot.waitUntil(lambda: answered(window), timeout=60_000)
        text = window.chats.view.answers[0].turn.text
        assert question in SUGGESTIONS
        assert part in text
        assert "Settings" not in text  # what it took other questions for

    BUILD.mkdir(parents=True, exist_ok=True)
    assert window.grab().save(str(BUILD / "guide.png"))
    window.close()
