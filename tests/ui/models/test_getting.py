"""A click, and Qwen answers: the whole job through the window, against a hub on loopback."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app import catalog, paths, selftest
from app.download import Access
from app.engine import Engine
from app.errors import SlipstreamError
from app.job import Failure, Job, Jobs, Repair, Tools
from app.library import Library, ModelState
from app.settings import Settings
from app.ui.look.notice import Notice
from app.ui.look.theme import Theme
from app.ui.window.main_window import MainWindow
from tests import hub as faults
from tests.hub import Hub, parts, running
from tests.job import shaped
from tests.job.conftest import DEMO, long_folder
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


OpenOn = Callable[[Path], MainWindow]


@pytest.fixture
def open_on(qtbot: QtBot, look: Theme, hub: Hub, one_core: None) -> Iterator[OpenOn]:
    """A window on this folder for models."""
    windows = []

    def open_it(root: Path) -> MainWindow:
        root.mkdir(parents=True, exist_ok=True)
        library = Library.of_user(str(root))
        jobs = Jobs(library.place, lambda: Tools(selftest.try_pair, Access(), margin=0))
        settings = Settings(backend="cpu", max_tokens=200)
        window = MainWindow(Engine(), library, settings, lambda _: None, look, jobs=jobs)
        windows.append(window)
        qtbot.addWidget(window)
        window.resize(1280, 800)
        window.show()
        return window

    yield open_it
    for window in windows:
        window.close()


@pytest.fixture
def window(open_on: OpenOn, tmp_path: Path) -> MainWindow:
    return open_on(tmp_path / "models")


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
    assert window.flow.current.n_ctx is None  # as much as fits
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


def test_one_laid_out_as_the_real_one_in_a_folder_with_a_long_foreign_name(
    open_on: OpenOn,
    hub: Hub,
    qtbot: QtBot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shards, vision and multi-token prediction; each step, loading too, at such a path."""
    target, draft = shaped.write_pair(tmp_path / "served")
    hub.add("Qwen/Qwen3.5-4B", target)
    hub.add("z-lab/Qwen3.5-4B-DFlash", draft)
    root = long_folder(tmp_path)
    monkeypatch.setenv("HF_HOME", str(root / "hf"))
    window = open_on(root / "models")
    get(window, qtbot)
    with qtbot.waitSignal(window.getting.ended, timeout=PATIENCE_MS):
        pass
    window.flow.change(verify="greedy")
    qtbot.waitUntil(lambda: not window.loader.obstacle, timeout=60_000)
    assert window.controller.ask("Who are you?")
    qtbot.waitUntil(lambda: bool(window.chats.view.answers), timeout=10_000)
    qtbot.waitUntil(lambda: answered(window), timeout=60_000)
    assert window.chats.view.answers[0].turn.text == 200 * shaped.SAYS
    totals = window.meters.counters.totals
    assert totals.accepted == totals.drafted  # however many the governor had drafted
    assert state(window) is ModelState.READY
    passport = next(m.passport for m in window._models.models() if m.id == MODEL)
    assert passport is not None
    assert {check.name for check in passport.checks if check.ok} >= {"acceptance", "lossless"}


def test_another_folder_for_models(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is used from now on; one in which nothing can be written is refused at once."""
    monkeypatch.setattr(paths, "data", lambda: tmp_path / "data")
    sheet = window.models_sheet
    before = window._models.root
    (tmp_path / "file").touch()
    sheet.folder_chosen.emit(str(tmp_path / "file"))
    assert window._models.root == before
    assert any("no file can be made" in n.message for n in sheet.findChildren(Notice))
    (tmp_path / "data" / "models").mkdir(parents=True)
    (tmp_path / "data" / "more" / "mine").mkdir(parents=True)
    (tmp_path / "data" / "more" / "mine" / "target.gguf").write_bytes(b"GGUF")
    sheet.folder_chosen.emit(str(tmp_path / "data" / "more"))
    assert window._models.root == tmp_path / "data" / "more"
    assert window.flow.current.models_folder == "more"  # it moves where the data moves
    qtbot.waitUntil(lambda: "mine" in sheet.rows, timeout=60_000)
    assert sheet.place.whole() == str(tmp_path / "data" / "more")
    sheet.folder_chosen.emit(str(tmp_path / "data" / "models"))
    assert window.flow.current.models_folder == ""


def test_nothing_is_got_into_a_folder_that_is_not_there(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    root = window._models.root
    root.rmdir()
    told: list[SlipstreamError] = []
    window.getting.failed.connect(told.append)
    get(window, qtbot)
    qtbot.waitUntil(lambda: bool(told), timeout=60_000)
    assert "Connect its drive" in told[0].remedy
    assert not root.exists()
    (tmp_path / "other").mkdir()
    window.models_sheet.folder_chosen.emit(str(tmp_path / "other"))
    assert window._models.root == tmp_path / "other"


def test_what_had_too_little_room_goes_on_in_another_folder(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    sheet, old = window.models_sheet, window._models.root
    known = catalog.find(MODEL)
    assert known is not None
    job = Job.start(old, known, Tools(), weight_type="q4_k_m")
    failure = Failure("The disk is full.", "Free some.", Repair.ROOM.value, "convert")
    job._note(replace(job.journal, failure=failure))
    window.model_list.refresh()
    qtbot.waitUntil(lambda: MODEL in sheet.cards, timeout=60_000)
    assert sheet.cards[MODEL].folder.isVisibleTo(sheet)
    (tmp_path / "other").mkdir()
    sheet.folder_chosen.emit(str(tmp_path / "other"))
    qtbot.waitUntil(lambda: sheet.place.whole() == str(tmp_path / "other"), timeout=60_000)
    qtbot.waitUntil(lambda: MODEL in sheet.cards, timeout=60_000)
    qtbot.waitUntil(lambda: not sheet.cards[MODEL].message.isVisibleTo(sheet), timeout=60_000)
    assert sheet.cards[MODEL].help.text() == "Continue"
    assert state(window) is ModelState.UNFINISHED


def test_closed_in_the_middle_and_opened_again(
    open_on: OpenOn, hub: Hub, qtbot: QtBot, tmp_path: Path
) -> None:
    hub.always[BIG] = faults.slowly(1_000_000)
    first = open_on(tmp_path / "models")
    get(first, qtbot)
    cache = tmp_path / "hf" / "hub"
    qtbot.waitUntil(lambda: any(size > 1_000_000 for size in parts(cache)), timeout=60_000)
    before = time.monotonic()
    first.close()
    assert time.monotonic() - before < 5
    kept = max(parts(cache))
    assert kept > 1_000_000
    hub.always.clear()
    hub.seen.clear()
    again = open_on(tmp_path / "models")
    qtbot.waitUntil(lambda: MODEL in again.models_sheet.cards, timeout=60_000)
    assert any("not finished" in n.message for n in again.findChildren(Notice))
    assert again.models_sheet.cards[MODEL].help.text() == "Continue"
    with qtbot.waitSignal(again.getting.ended, timeout=PATIENCE_MS):
        again.models_sheet.cards[MODEL].help.click()
    begun = [r.headers.get("Range") for r in hub.gets(BIG)]
    assert any(int(start.strip("bytes=-")) >= kept for start in begun if start)
    assert state(again) is ModelState.READY


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
