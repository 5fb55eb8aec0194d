"""Notices go when they are no longer true, and have the button that mends what they tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app import paths
from app.engine import DeviceInfo, Script
from app.engine.fake import FAKE_CPU, FAKE_GPU
from app.errors import (
    ContextFullError,
    DeviceError,
    ModelFileError,
    NoModelError,
    OutOfMemoryError,
    OutputError,
)
from app.history import History
from app.jobs import CancelToken
from app.library import Pair
from app.presets import ChatOptions
from app.settings import Settings
from app.ui.look.notice import Notice
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine, FakeModels

Ask = Callable[[MainWindow, str], None]


class GuideOnly(FakeModels):
    """Nothing else is here, but for what is got."""

    def __init__(self) -> None:
        super().__init__()
        self.here = {"demo"}

    def open(
        self,
        model: str,
        progress: Callable[[float], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> Pair:
        if model not in self.here:
            raise NoModelError(f"{model} is not on this machine.", remedy="Get it in the list.")
        return super().open(model, progress, cancel)


def notices(window: MainWindow) -> list[str]:
    return [n.message for n in window.notices.all]


def button(window: MainWindow, text: str, within: QWidget | None = None) -> QAbstractButton:
    found = (within or window.notices).findChildren(QAbstractButton)
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


def test_no_gpu_goes_when_there_is_one(open_window: OpenWindow, wait_until: WaitUntil) -> None:
    """As where its backend was still being built."""
    none = DeviceInfo("GPU", "No GPU", "gpu", 0, 0, False, "This build has no GPU backend.")
    engine = BatchEngine()
    engine.device_list = (FAKE_CPU, none)
    engine.script.load_error = DeviceError("No GPU can be used.", remedy="Choose the CPU.")
    window = open_window(engine, wait=False, backend="gpu")
    wait_until(lambda: notices(window) == ["No GPU can be used."])
    window._find_devices()  # nothing came
    wait_until(lambda: window.header.device.button("gpu").toolTip() == none.reason)
    assert notices(window) == ["No GPU can be used."]
    engine.script.load_error = None
    engine.device_list = (FAKE_CPU, FAKE_GPU)
    window._find_devices()
    wait_until(lambda: window.header.chip.state.text == "DFlash ready")
    assert notices(window) == []
    assert window.header.device.choice() == "gpu"
    assert len(engine.loads) == 2


def test_why_a_gpu_was_not_taken_is_not_told_of_one_that_came_later(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    none = DeviceInfo("GPU", "No GPU", "gpu", 0, 0, False, "This build has no GPU backend.")
    engine = BatchEngine()
    engine.device_list = (FAKE_CPU, none)
    window = open_window(engine)
    gpu = window.header.device.button("gpu")
    wait_until(lambda: gpu.toolTip() == none.reason)
    assert window.meters.model is not None
    window.header.set_model(replace(window.meters.model, fallback=none.reason))
    window.header.set_devices((FAKE_CPU, FAKE_GPU))
    assert gpu.isEnabled()
    assert gpu.toolTip() == "Scripted GPU."


def test_what_is_told_of_the_model_is_of_the_one_that_answers(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil
) -> None:
    """And not of the one that the settings name, which could not be loaded."""
    models = GuideOnly()
    window = open_window(BatchEngine(Script(text="one two three")), models)
    picker, loader = window.header.picker, window.loader
    window.models_sheet.chosen.emit("qwen3.5-4b")
    assert picker.text().startswith("Qwen3.5-4B")  # on its way
    wait_until(lambda: notices(window) == ["qwen3.5-4b is not on this machine."])
    assert window.flow.current.model == "qwen3.5-4b"
    assert picker.text() == "Built-in guide · tiny demo model"
    assert window.demo_note.isVisible()
    button(window, "Show the models").click()
    assert window.models_sheet.isVisible()
    assert window.models_sheet.rows["demo"].main.text() == "In use"
    window.controller.set_options(ChatOptions().choose("think", True))  # the guide has no vendor
    params = window.controller.ask_params()
    assert params is not None
    assert params.sampling.temperature == window.flow.current.temperature
    ask(window, "Count")
    window.actions_.prove.trigger()
    wait_until(lambda: window.proof_page.proof is not None)
    assert window.proof_page.proof is not None
    assert window.proof_page.proof.subject.model == "demo"
    picker.chosen.emit("demo")  # to stay with it
    wait_until(lambda: not loader.obstacle)
    assert (window.flow.current.model, notices(window)) == ("demo", [])


def test_a_damaged_file_leads_to_the_models(open_window: OpenWindow, wait_until: WaitUntil) -> None:
    script = Script(load_error=ModelFileError("It is incomplete.", remedy="Get it again."))
    window = open_window(BatchEngine(script), wait=False)
    wait_until(lambda: notices(window) == ["It is incomplete."])
    button(window, "Show the models").click()
    assert window.sides.sheet is window.models_sheet


def test_a_model_that_the_settings_name_already_is_loaded_when_it_has_come(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    models, engine = GuideOnly(), BatchEngine()
    window = open_window(engine, models, wait=False, model="qwen3.5-4b")
    missing = ["qwen3.5-4b is not on this machine."]
    wait_until(lambda: notices(window) == missing)
    assert not window.demo_note.isVisible()
    window.header.picker.chosen.emit("qwen3.5-4b")  # tried again
    assert window.loader.activity
    wait_until(lambda: not window.loader.activity)
    assert notices(window) == missing
    models.here.add("qwen3.5-4b")
    window.getting.ended.emit("qwen3.5-4b")
    wait_until(lambda: not window.loader.obstacle)
    assert models.opened == ["qwen3.5-4b"]
    assert notices(window) == ["Qwen3.5-4B is ready."]
    assert window.notices.all[0].says("Qwen3.5-4B is ready.", "It answers from now on.")
    window.header.picker.chosen.emit("qwen3.5-4b")  # it is in use: its answers go on
    assert not window.loader.activity


def test_what_does_not_fit_offers_a_context_that_does(
    open_window: OpenWindow, wait_until: WaitUntil
) -> None:
    engine = BatchEngine()
    engine.script.load_error = OutOfMemoryError("It takes 9 GB.", remedy="Choose 8192.")
    window = open_window(engine, wait=False, n_ctx=65_536)
    wait_until(lambda: notices(window) == ["It takes 9 GB."])
    assert button(window, "Use the CPU")
    button(window, "Try again").click()  # room may have come by itself
    wait_until(lambda: len(engine.loads) == 2 and notices(window) == ["It takes 9 GB."])
    engine.script.load_error = None
    button(window, "Fit the context").click()
    wait_until(lambda: window.header.chip.state.text == "DFlash ready")
    assert window.flow.current.n_ctx is None
    assert engine.loads[-1].params.n_ctx is None
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
    button(window, "Undo").click()
    assert notices(window) == []
    assert window.controller.current.start is None


def test_an_answer_that_the_chat_was_too_long_for_is_made_without_its_oldest_messages(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil
) -> None:
    engine = BatchEngine(Script(text="fine"))
    window = open_window(engine)
    error = ContextFullError("The prompt is too long.", remedy="Start a new chat.")
    engine.script = replace(engine.script, error=error)
    ask(window, "Question 0 ?")
    button(window, "Drop oldest", window.chats.view).click()
    assert len(engine.asked) == 1  # there is nothing that could be left out
    wait_until(lambda: "The prompt is too long." in shown(window))
    engine.script = replace(engine.script, error=None)
    for number in (1, 2):
        ask(window, f"Question {number} ?")
    engine.script = replace(engine.script, error=error)
    ask(window, "Question 3 ?")
    engine.script = replace(engine.script, error=None)
    last = window.chats.view.answers[-1]
    button(window, "Drop oldest", last).click()
    wait_until(lambda: len(engine.asked) == 5 and not window.controller.busy)
    assert [m.content for m in engine.asked[-1].chat] == ["Question 2 ?", "fine", "Question 3 ?"]
    assert window.chats.view.answers[-1].turn.text == "fine"


def test_an_older_answer_is_made_without_what_is_oldest_before_it(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil
) -> None:
    """What came after it is not asked again: leaving that out makes nothing shorter."""
    engine = BatchEngine(Script(text="fine"))
    window = open_window(engine)
    error = ContextFullError("The prompt is too long.", remedy="Start a new chat.")
    for number in range(6):
        engine.script = replace(engine.script, error=error if number == 2 else None)
        ask(window, f"Question {number} ?")
    engine.script = replace(engine.script, error=None)
    failed = window.controller.current.path()[5]
    window.chats.view.reveal(failed)
    answer = window.chats.view.answer_of(failed)
    assert answer is not None
    button(window, "Drop oldest", answer).click()
    wait_until(lambda: len(engine.asked) == 7 and not window.controller.busy)
    chat = [m.content for m in engine.asked[-1].chat]
    assert chat == ["Question 1 ?", "fine", "Question 2 ?"]
    assert notices(window) == ["The model no longer reads the oldest 2 messages of this chat."]


def test_why_an_answer_failed_stays_while_nothing_can_be_asked(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil
) -> None:
    models = FakeModels()
    engine = BatchEngine(Script(text="fine"))
    window = open_window(engine, models=models)
    ask(window, "Question 0 ?")
    error = ContextFullError("The prompt is too long.", remedy="Start a new chat.")
    engine.script = replace(engine.script, error=error)
    ask(window, "Question 1 ?")
    engine.script = replace(engine.script, error=None)
    models.let.clear()
    window.controller.load()
    button(window, "Drop oldest", window.chats.view).click()
    assert window.controller.current.start is None
    assert notices(window) == ["The model is on its way."]
    wait_until(lambda: shown(window) == ["The prompt is too long."])
    models.let.set()
    wait_until(lambda: not window.loader.obstacle)
    assert notices(window) == []
    button(window, "Drop oldest", window.chats.view).click()
    wait_until(lambda: len(engine.asked) == 3 and not window.controller.busy)
    assert [m.content for m in engine.asked[-1].chat] == ["Question 1 ?"]


@pytest.mark.parametrize("more", [False, True])
def test_keys_go_to_the_composer_after_the_oldest_messages_were_dropped(
    open_window: OpenWindow, ask: Ask, qtbot: QtBot, more: bool
) -> None:
    """The button goes; what Qt finds next would take the next key."""
    engine = BatchEngine(Script(text="fine"))
    window = open_window(engine)
    if more:
        ask(window, "Question 0 ?")
    error = ContextFullError("The prompt is too long.", remedy="Start a new chat.")
    engine.script = replace(engine.script, error=error)
    ask(window, "Question 1 ?")
    drop = button(window, "Drop oldest", window.chats.view)
    drop.setFocus()
    qtbot.keyClick(drop, Qt.Key.Key_Space)
    assert window.composer.field.hasFocus()


def shown(window: MainWindow) -> list[str]:
    """Messages in the chat itself."""
    return [n.message for n in window.chats.view.findChildren(Notice) if n.isVisible()]


@pytest.mark.parametrize("other", ["new", "back"])
def test_what_is_said_of_a_chat_is_seen_in_that_chat(
    open_window: OpenWindow, ask: Ask, other: str
) -> None:
    window = open_window()
    for text in ("One", "Two"):
        ask(window, text)
    first = window.controller.current
    window._drop_oldest()
    assert len(notices(window)) == 1
    divider = window.chats.view._divider
    assert divider.isVisible()
    window.actions_.new_chat.trigger()
    assert notices(window) == []
    assert not window.chats.view._divider.isVisible()
    if other == "back":
        window.controller.show_chat(first.id)
        assert notices(window) == []
        assert divider.isVisible()  # where it is seen for good


def test_the_chat_shows_from_where_on_it_is_read(open_window: OpenWindow, ask: Ask) -> None:
    window = open_window()
    for text in ("One", "Two"):
        ask(window, text)
    view, divider = window.chats.view, window.chats.view._divider
    assert not divider.isVisible()
    window.controller.forget_oldest()
    second = next(m for m in view.messages if m.turn.text == "Two")
    assert divider.isVisible()
    assert divider.geometry().bottom() < second.y()
    assert divider.y() > view.answers[0].geometry().bottom()
    divider.findChild(QAbstractButton).click()
    assert window.controller.current.start is None
    assert not divider.isVisible()


def test_what_is_wrong_with_the_folder_for_all_is_not_told_as_that_for_models(
    open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    models = FakeModels()
    models.problem = "`/gone`, where chats and models are, is not there. Connect its drive."
    window = open_window(models=models, folder_problems=[models.problem])
    (notice,) = window.notices.all
    notice.findChild(QPushButton).click()
    assert window.flow.current.data == str(tmp_path)
    assert window.flow.current.models_folder == ""


def test_a_folder_that_cannot_be_used_offers_another(
    open_window: OpenWindow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wait_until: WaitUntil,
) -> None:
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "elsewhere"))
    (tmp_path / "file").touch()
    (tmp_path / "elsewhere").mkdir()
    models = FakeModels()
    models.problem = "The folder for models, `/gone`, is not there."
    window = open_window(
        models=models,
        history=History(tmp_path / "file" / "chats.db"),
        folder_problems=["`/old` could not be moved to `/full`: No space left."],
    )
    wait_until(lambda: len(notices(window)) == 3)
    for message in notices(window):
        notice = next(n for n in window.notices.all if n.message == message)
        assert [b.text() for b in notice.findChildren(QPushButton)] == ["Choose another folder …"]
    for message, setting in (
        ("could not be moved", "data"),
        ("folder for models", "models_folder"),
    ):
        notice = next(n for n in window.notices.all if message in n.message)
        notice.findChild(QPushButton).click()
        assert getattr(window.flow.current, setting) == str(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("folder", "told"), [("elsewhere", "when Slipstream starts again"), ("", "nothing moves")]
)
def test_another_folder_for_the_data_says_what_becomes_of_it(
    open_window: OpenWindow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    told: str,
) -> None:
    chosen = str(tmp_path / folder) if folder else str(paths.data())
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: chosen)
    window = open_window()
    window.sheet.folder_wanted.emit("data")
    (notice,) = notices(window)
    assert told in notice
    assert window.flow.current.data == chosen
