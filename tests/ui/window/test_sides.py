"""Panels and sheets at every width: beside the conversation, or over it and soon gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app import paths
from app.engine import DeviceInfo, Script
from app.ui.window.actions import Topic
from app.ui.window.main_window import MainWindow
from app.ui.window.sides import Side
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine

LONG = " ".join(f"word{i}" for i in range(400))
SIZES = [(1280, 800), (911, 472), (683, 340), (400, 700), (360, 640)]


def area(widget: QWidget, window: MainWindow) -> QRect:
    return QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())


def click(window: MainWindow, at: QPoint) -> None:
    """Where it is, whatever is there: what a mouse does."""
    target = window.childAt(at)
    assert target is not None
    QTest.mouseClick(target, Qt.MouseButton.LeftButton, pos=target.mapFrom(window, at))


@pytest.mark.parametrize("size", SIZES)
def test_the_window_takes_this_size(open_window: OpenWindow, size: tuple[int, int]) -> None:
    window = open_window()
    window.resize(*size)
    assert (window.width(), window.height()) == size
    for part in (window.composer.send, window.header.more, window.header.chats):
        assert window.rect().contains(area(part, window))


@pytest.mark.parametrize("size", SIZES)
def test_chats_can_be_reached_at_every_width(
    open_window: OpenWindow, size: tuple[int, int]
) -> None:
    window = open_window()
    window.resize(*size)
    seen = window.sidebar.isVisible()
    window.header.chats.click()
    assert window.sidebar.isVisible() is not seen
    assert window.actions_.sidebar.isChecked() is not seen
    window.actions_.sidebar.trigger()  # what its key does: see test_keys
    assert window.sidebar.isVisible() is seen


def test_what_floats_goes_with_a_click_beside_it(open_window: OpenWindow) -> None:
    window = open_window()
    window.resize(400, 700)
    for show in (window.actions_.sidebar, window.actions_.meters):
        panel = window.sidebar if show is window.actions_.sidebar else window.panel
        show.trigger()
        assert panel.isVisible()
        assert panel.width() < 400
        click(window, QPoint(396 if panel is window.sidebar else 4, 300))
        assert not panel.isVisible()


def test_what_floats_goes_with_escape(open_window: OpenWindow) -> None:
    window = open_window()
    window.resize(400, 700)
    window.actions_.sidebar.trigger()
    QTest.keyClick(window.composer.field, Qt.Key.Key_Escape)
    assert not window.sidebar.isVisible()


@pytest.mark.parametrize(
    ("part", "docked"),
    [
        ("models", True),
        ("search", True),
        ("models", False),
        ("search", False),
        ("sidebar", False),
        ("meters", False),
    ],
)
def test_escape_closes_what_is_open_before_it_stops_the_answer(
    open_window: OpenWindow, wait_until: WaitUntil, part: str, docked: bool
) -> None:
    window = open_window(BatchEngine(Script(text=LONG * 10), batch=1))
    window.resize(*((1280, 800) if docked else (640, 480)))
    window.controller.ask("Go")
    wait_until(lambda: window.controller.busy)
    getattr(window.actions_, part).trigger()
    opened = {"models": Side.SHEET, "meters": Side.METERS}.get(part, Side.CHATS)
    assert window.sides.seen(opened)
    QTest.keyClick(window.focusWidget(), Qt.Key.Key_Escape)
    assert window.controller.busy
    assert window.sides.seen(opened) is (docked and part == "search")
    assert window.composer.field.hasFocus()
    QTest.keyClick(window.composer.field, Qt.Key.Key_Escape)
    wait_until(lambda: not window.controller.busy)


def test_a_window_that_grows_docks_what_floats(open_window: OpenWindow) -> None:
    window = open_window()
    window.resize(400, 700)
    window.actions_.sidebar.trigger()
    window.resize(1280, 800)
    assert window.sidebar.isVisible()
    assert window.sidebar.x() == 0
    assert area(window.composer, window).left() > window.sidebar.width()
    window.resize(400, 700)
    assert not window.sidebar.isVisible()


@pytest.mark.parametrize("size", SIZES)
def test_a_sheet_never_covers_the_composer(open_window: OpenWindow, size: tuple[int, int]) -> None:
    window = open_window()
    window.resize(*size)
    window.toggle_settings()
    assert window.sheet.isVisible()
    assert not area(window.sheet, window).intersects(area(window.composer, window))
    assert window.rect().contains(area(window.sheet, window))


@pytest.mark.parametrize("docked_first", [False, True])
def test_a_floating_sheet_makes_way_for_a_message(
    open_window: OpenWindow, wait_until: WaitUntil, docked_first: bool
) -> None:
    window = open_window()
    window.resize(1280 if docked_first else 640, 700)
    window.toggle_settings()
    window.resize(640, 700)
    lowest = window.composer.parentWidget()
    assert lowest is not None

    def makes_way(for_message: bool) -> bool:
        place, composer = area(lowest, window), area(window.composer, window)
        has_message = area(window.notices, window).bottom() < composer.top() - 1
        laid_out = has_message if for_message else composer.top() < place.top() + 20
        return laid_out and area(window.sheet, window).bottom() + 1 == place.top()

    for _ in range(3):
        wait_until(lambda: makes_way(False))
        window.notices.add("The settings cannot be written.")
        wait_until(lambda: makes_way(True))
        window.notices.close_all()
    wait_until(lambda: makes_way(False))


@pytest.mark.parametrize("size", [(1280, 800), (400, 700)])
def test_a_click_outside_closes_a_sheet_and_does_its_work(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil, size: tuple[int, int]
) -> None:
    window = open_window()
    window.resize(*size)
    window.composer.field.setPlainText("Hello")
    window.toggle_settings()
    qtbot.mouseClick(window.sheet.page, Qt.MouseButton.LeftButton)
    assert window.sheet.isVisible()
    qtbot.mousePress(window.composer.send, Qt.MouseButton.LeftButton)
    QApplication.processEvents()
    assert window.sheet.isVisible()  # else what is pressed would move from under the mouse
    qtbot.mouseRelease(window.composer.send, Qt.MouseButton.LeftButton)
    wait_until(lambda: not window.sheet.isVisible())
    assert window.controller.current.path()[0].text == "Hello"


def test_a_click_on_an_empty_place_of_a_sheet_leaves_it_open(
    open_window: OpenWindow, qtbot: QtBot
) -> None:
    """And where one beside it closes it, the composer has the focus."""
    window = open_window()
    for action in (window.actions_.models, window.actions_.settings, window.actions_.chat_options):
        action.trigger()
        sheet = window.sides.sheet
        assert sheet is not None
        for label in sheet.findChildren(QLabel):
            if label.visibleRegion().contains(label.rect().center()):
                qtbot.mouseClick(label, Qt.MouseButton.LeftButton)
                qtbot.wait(1)
                assert sheet.isVisible(), label.text()
        qtbot.mouseClick(window.header, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda s=sheet: not s.isVisible())  # type: ignore[misc]
        assert window.composer.field.hasFocus()


@pytest.mark.parametrize("wanted", [True, False])
def test_the_meters_come_in_the_place_of_a_sheet(open_window: OpenWindow, wanted: bool) -> None:
    window = open_window(show_meters=wanted)
    window.toggle_settings()
    window.actions_.meters.trigger()
    assert not window.sides.seen(Side.SHEET)
    assert window.panel.isVisible()
    assert window.actions_.meters.isChecked()
    assert window.flow.current.show_meters


def test_the_button_of_a_sheet_closes_it_too(open_window: OpenWindow, qtbot: QtBot) -> None:
    window = open_window()
    for seen in (True, False):
        qtbot.mouseClick(window.header.settings, Qt.MouseButton.LeftButton)
        assert window.sheet.isVisible() is seen


def test_escape_in_a_sheet_closes_it_and_stops_nothing(
    open_window: OpenWindow, qtbot: QtBot, wait_until: WaitUntil
) -> None:
    window = open_window(BatchEngine(Script(text=LONG), batch=1))
    window.controller.ask("Go")
    window.toggle_settings()
    window.sheet.numbers["top_k"].field.setFocus()
    qtbot.keyClick(window.sheet.numbers["top_k"].field, Qt.Key.Key_Escape)
    assert not window.sheet.isVisible()
    assert window.controller.busy
    assert window.focusWidget() is window.composer.field


@pytest.mark.parametrize("topic", list(Topic))
def test_help_tells(open_window: OpenWindow, topic: Topic) -> None:
    window = open_window()
    window.actions_.help[topic].trigger()
    assert window.help.isVisible()
    assert window.help.accessibleName() == topic.value
    words = " ".join(label.text() for label in window.help.findChildren(type(window.help._title)))
    wanted = {
        Topic.KEYS: "Ctrl+N",
        Topic.DEVICES: "Scripted GPU",
        Topic.LOG: "slipstream.log",
        Topic.LICENCES: "SIL Open Font License",
        Topic.ABOUT: "Slipstream 0.",
    }
    assert wanted[topic] in words


def test_a_device_is_told_by_each_of_its_names_once(open_window: OpenWindow) -> None:
    none = DeviceInfo("GPU", "No GPU", "gpu", 0, 0, False, "This build has no GPU backend.")
    engine = BatchEngine()
    engine.device_list = (DeviceInfo("CPU", "A CPU", "cpu", 8 << 30, 4 << 30, True, ""), none)
    window = open_window(engine)
    window.actions_.help[Topic.DEVICES].trigger()
    told = [label.text() for label in window.help._content.findChildren(QLabel)]
    assert told == [
        *("A CPU", "CPU · 4.3 GB of 8.6 GB free"),
        *("No GPU", "GPU", "This build has no GPU backend."),
    ]


def test_the_installed_app_shows_the_licences_of_all_that_it_contains(
    open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = [
        {"name": "Qt", "version": "6", "licence": "LGPL-3.0-only", "text": "You may link."},
        {"name": "Inter", "version": "", "licence": "OFL-1.1", "text": ""},
    ]
    (tmp_path / "licences.json").write_text(json.dumps(inside))
    window = open_window()
    monkeypatch.setattr(paths, "assets", lambda: tmp_path)
    window.actions_.help[Topic.LICENCES].trigger()
    words = [label.text() for label in window.help.findChildren(type(window.help._title))]
    assert {"Qt 6", "LGPL-3.0-only", "Inter", "OFL-1.1"} <= set(words)
    (read,) = (b for b in window.help.findChildren(QPushButton) if b.text() == "Read")
    read.click()
    (text,) = window.help.findChildren(QPlainTextEdit)
    assert text.toPlainText() == "You may link."
    assert text.isReadOnly()
    read.click()
    assert read.text() == "Read"
    (tmp_path / "licences.json").write_text("{")
    window.actions_.help[Topic.LICENCES].trigger()
    assert "llama.cpp and llama-cpp-python" in [
        label.text() for label in window.help.findChildren(type(window.help._title))
    ]


@pytest.mark.parametrize("size", [(400, 700), (360, 640)])
def test_nothing_is_wider_than_a_narrow_window(
    open_window: OpenWindow, wait_until: WaitUntil, size: tuple[int, int]
) -> None:
    window = open_window(BatchEngine(Script(text="Some text.")))
    window.resize(*size)
    window.controller.ask("Hello?")
    window.controller.ask("And?")
    wait_until(lambda: not window.controller.busy)
    window.composer.set_warning("Too long.")
    wait_until(lambda: window.chats.view.widget().width() <= window.chats.view.viewport().width())
    for sheet in (window.sheet, window.chat_sheet, window.models_sheet, window.help):
        window.sides.open_sheet(sheet)
        for scrolled in sheet.findChildren(QScrollArea):
            page, room = scrolled.widget(), scrolled.viewport().width()
            assert page.minimumSizeHint().width() <= room, sheet.accessibleName()
        window.sides.close_sheet()
    assert all(button.isVisible() for button in window.composer.findChildren(QPushButton))
    for button in window.composer.findChildren(QPushButton):
        assert button.width() >= button.sizeHint().width()
        assert window.rect().contains(area(button, window))
