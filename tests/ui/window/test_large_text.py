"""Text of any size in windows of any size: nothing is cut, and nothing lies beside the window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QAbstractButton, QLabel, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from app import paths
from app.drafting import Attachment
from app.engine import Script
from app.errors import OutOfMemoryError
from app.job import Failure
from app.library import ModelState, ModelStatus
from app.ui.chat.chips import Chip
from app.ui.look.controls import Elided
from app.ui.look.theme import Theme
from app.ui.models.passport import PassportView
from app.ui.models.picker import ModelPicker
from app.ui.window.actions import Topic
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import LONGEST_WAIT_MS, OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine, FakeModels
from tests.ui.models.shots import passport

SIZES = [(360, 640), (683, 384), (1280, 800)]


def cut(window: MainWindow) -> list[str]:
    """Words of what is seen that have not the room they need."""
    found = []
    for widget in window.findChildren(QWidget):
        if not isinstance(widget, QLabel | QAbstractButton) or not widget.isVisible():
            continue
        elides = isinstance(widget, Elided | ModelPicker) or isinstance(widget.parent(), Chip)
        if not widget.text() or elides:
            continue
        needed = widget.sizeHint()
        if isinstance(widget, QLabel) and widget.wordWrap():
            needed = widget.minimumSizeHint()
            needed.setHeight(widget.heightForWidth(widget.width()))
        left = widget.mapTo(window, QPoint(0, 0)).x()
        outside = left < 0 or left + widget.width() > window.width()
        if outside or widget.width() < needed.width() or widget.height() < needed.height():
            room = f"{widget.width()}x{widget.height()} at {left}"
            found.append(f"{widget.text()!r}: {room}, needs {needed.toTuple()}")
    for area in window.findChildren(QScrollArea):
        page = area.widget()
        if area.isVisible() and page is not None and page.width() > area.viewport().width():
            found.append(f"{area.accessibleName()}: {page.width()} > {area.viewport().width()}")
    return found


@pytest.fixture(params=[15, 22])
def text_size(request: pytest.FixtureRequest, look: Theme) -> Iterator[int]:
    yield request.param
    look.set_text_size(15)


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_cut(
    open_window: OpenWindow,
    wait_until: WaitUntil,
    qtbot: QtBot,
    text_size: int,
    size: tuple[int, int],
) -> None:
    paths.log_file().parent.mkdir(parents=True, exist_ok=True)
    with paths.log_file().open("a", encoding="utf-8") as log:
        log.write("/a/path/" + "that_goes_on" * 20 + "\n")
    script = Script(text="An answer. " * 30, reasoning="Let me think. " * 8, block=16)
    engine = BatchEngine(script, batch=1)
    window = open_window(engine, text_size=text_size, n_ctx=65_536, think=True)
    window.resize(*size)
    chats = window.chats

    problems = []

    def whole(what: str) -> None:
        try:
            qtbot.waitUntil(lambda: not cut(window), timeout=LONGEST_WAIT_MS)
        except QtBot.TimeoutError:
            problems.append(f"{what}: " + "; ".join(cut(window)))

    whole("welcome")
    window.controller.ask("Why?")
    wait_until(lambda: bool(chats.view.answers) and chats.view.answers[0]._now.isVisible())
    whole("thinking")
    engine.hurry()
    wait_until(lambda: not window.controller.busy and chats.view.answers[0].rendered)
    chats.view.answers[0]._why.click()
    chats.view.go_down()
    whole("answer")

    window.composer.attach(Attachment("a-name-that-goes-on-and-on-and-on-for-ever.txt", "Text."))
    window.composer.set_warning("This is longer than the context.")
    whole("composer")
    window.composer.clear()
    window.composer.set_warning("")
    error = OutOfMemoryError("The GPU has 2.1 GB free, and 3.4 GB are needed.", remedy="Wait.")
    window.loader.failed.emit(error)
    window.notices.offer_link("https://example.org/a/long/address")
    whole("notices")
    window.notices.close_all()

    for side in (window.actions_.sidebar, window.actions_.meters):
        if not side.isChecked():
            side.trigger()
        whole(side.text())
        window.sides.close_floating()
    window.actions_.find.trigger()
    whole("find")
    window.finder.leave()
    for sheet in (window.actions_.settings, window.actions_.chat_options, window.actions_.models):
        sheet.trigger()
        whole(sheet.text())
        window.sides.close_sheet()
    for topic in Topic:
        window.actions_.help[topic].trigger()
        whole(topic.value)
        window.sides.close_sheet()
    window.actions_.prove.trigger()
    wait_until(lambda: not window.proof_page.busy)
    whole("proof")
    assert not problems


@pytest.mark.parametrize("size", [*SIZES, (700, 600), (1000, 700)])
def test_a_model_with_a_long_name_leaves_room_for_all_else(
    open_window: OpenWindow, wait_until: WaitUntil, text_size: int, size: tuple[int, int]
) -> None:
    name = "Qwen3.5-4B-Instruct-" + "that_goes_on_" * 4 + "Q4_K_M"
    file = Path(f"/models/{name}/target.gguf")
    models = FakeModels()
    models.more = (
        ModelStatus(str(file), name, ModelState.READY, path=file, passport=passport()),
        ModelStatus("gone", name, ModelState.BROKEN, f"`{file}` is shorter than it was.", file),
        ModelStatus("own", name, ModelState.UNFINISHED, failure=Failure("No connection.", "Wait.")),
    )
    window = open_window(models=models, text_size=text_size)
    window.resize(*size)
    window.header.picker.set_in_use(str(file))
    wait_until(lambda: bool(window.notices.all) and not cut(window))
    window.notices.close_all()
    window.show_models()
    wait_until(lambda: len(window.models_sheet.cards) == 1 and not cut(window))
    header = window.header
    for part in (header.device, header.chip, header.picker, header.more):
        assert header.rect().contains(part.geometry()), part


@pytest.mark.parametrize("width", [280, 340, 480])
def test_a_passport_fits(qtbot: QtBot, wait_until: WaitUntil, text_size: int, width: int) -> None:
    area = QScrollArea()
    qtbot.addWidget(area)
    area.setWidgetResizable(True)
    area.setWidget(PassportView(passport()))
    area.resize(round(width * text_size / 15), 400)
    area.show()
    view = area.widget()
    assert isinstance(view, PassportView)
    wait_until(lambda: view.width() == area.viewport().width())
