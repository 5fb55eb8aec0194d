"""A click, and Qwen answers: the whole job through the window, against a hub on loopback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app import selftest
from app.download import Access
from app.engine import Engine
from app.job import Jobs, Tools
from app.library import Library, ModelState
from app.settings import Settings
from app.ui.look.notice import Notice
from app.ui.look.theme import Theme
from app.ui.window.main_window import MainWindow
from tests import hub as faults
from tests.hub import Hub, running
from tests.job.conftest import DEMO
from tests.ui.shots import answered

MODEL = "qwen3.5-4b"
BIG = "model.safetensors"
PATIENCE_MS = 240_000


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with running() as hub:
        hub.add("Qwen/Qwen3.5-4B", DEMO / "target")
        hub.add("z-lab/Qwen3.5-4B-DFlash", DEMO / "draft", licence=None)
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub


@pytest.fixture
def one_core() -> Iterator[None]:
    """On a busy machine, threads that wait for each other cost more than they give."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})  # children have it too
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture
def window(
    qtbot: QtBot, look: Theme, hub: Hub, tmp_path: Path, one_core: None
) -> Iterator[MainWindow]:
    library = Library.of_user(str(tmp_path / "models"))
    library.root.mkdir()
    jobs = Jobs(lambda: library.root, lambda: Tools(selftest.try_pair, Access(), margin=0))
    window = MainWindow(Engine(), library, Settings(backend="cpu"), lambda _: None, look, jobs=jobs)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    yield window
    window.close()


def get(window: MainWindow, qtbot: QtBot) -> None:
    """As a user does: the picker, and the row of the model."""
    qtbot.waitUntil(
        lambda: any(m.id == MODEL for m in window.header.picker._models), timeout=60_000
    )
    window.header.picker.popup.wanted.emit(MODEL)
    assert window.models_sheet.isVisible()


def state(window: MainWindow) -> ModelState:
    return next(m.state for m in window._models.models() if m.id == MODEL)


def test_a_click_and_the_model_answers(window: MainWindow, hub: Hub, qtbot: QtBot) -> None:
    seen: set[str] = set()
    window.getting.changed.connect(
        lambda: seen.add(window.getting.state.step if window.getting.state else "")
    )
    get(window, qtbot)
    with qtbot.waitSignal(window.getting.ended, timeout=PATIENCE_MS):
        pass
    assert {"download", "convert", "check"} <= seen
    assert window.flow.current.model == MODEL
    assert window.flow.current.n_ctx == 8192
    assert (window.flow.current.temperature, window.flow.current.verify) == (0.7, "gpu-sample")
    window.flow.change(verify="greedy")  # so that the answer is known
    qtbot.waitUntil(lambda: not window.loader.obstacle, timeout=60_000)
    assert window.header.picker.text().startswith("Qwen3.5-4B")
    assert window.controller.ask("What is DFlash?")
    qtbot.waitUntil(lambda: bool(window.chats.view.answers), timeout=10_000)
    qtbot.waitUntil(lambda: answered(window), timeout=60_000)
    assert window.chats.view.answers[0].turn.text.startswith("DFlash is a way")
    assert state(window) is ModelState.READY
    assert any("is ready" in n.message for n in window.findChildren(Notice))


def test_a_failure_has_a_button_that_mends_it(window: MainWindow, hub: Hub, qtbot: QtBot) -> None:
    hub.faults["api"] = [faults.status(404)]
    get(window, qtbot)
    with qtbot.waitSignal(window.getting.failed, timeout=60_000):
        pass
    qtbot.waitUntil(lambda: MODEL in window.models_sheet.cards, timeout=10_000)
    card = window.models_sheet.cards[MODEL]
    qtbot.waitUntil(lambda: "Qwen/Qwen3.5-4B" in card.message.text(), timeout=10_000)
    assert (card.help.text(), card.help.isHidden()) == ("Try again", False)
    hub.always[BIG] = faults.slowly(1_000_000)
    card.help.click()
    qtbot.waitUntil(
        lambda: window.getting.state is not None and window.getting.state.step == "download",
        timeout=60_000,
    )
    card = window.models_sheet.cards[MODEL]
    assert card.pause.isVisible()
    card.pause.click()
    qtbot.waitUntil(lambda: state(window) is ModelState.UNFINISHED, timeout=10_000)
    qtbot.waitUntil(
        lambda: window.models_sheet.cards[MODEL].help.text() == "Continue", timeout=10_000
    )
    window.models_sheet.cards[MODEL].give_up.click()
    qtbot.waitUntil(lambda: state(window) is ModelState.AVAILABLE, timeout=20_000)
    qtbot.waitUntil(lambda: MODEL in window.models_sheet.rows, timeout=10_000)
    assert not window.models_sheet.cards
