"""A service runs elsewhere and answers here."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.errors import EngineError, OptionError, SlipstreamError
from app.jobs import CancelToken
from app.ui import task


def test_success_comes_to_the_main_thread(qtbot: QtBot) -> None:
    seen: list[threading.Thread] = []
    came: list[threading.Thread] = []
    parent = QObject()
    progress: list[float] = []

    def operation(report: Callable[[float], None], cancel: CancelToken) -> int:
        seen.append(threading.current_thread())
        report(0.5)
        return 42

    def success(value: int) -> None:
        assert value == 42
        came.append(threading.current_thread())

    task.run(parent, operation, success, lambda error: None, progress.append)
    qtbot.waitUntil(lambda: bool(came))
    assert came[0] is threading.main_thread()
    assert seen[0] is not came[0]
    assert progress == [0.5]


def test_errors_keep_their_kind_and_faults_get_one(
    qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    parent = QObject()
    errors: list[SlipstreamError] = []
    told = OptionError("It is wrong.", remedy="Put it right.")

    def refuse(report: object, cancel: object) -> None:
        raise told

    def break_(report: object, cancel: object) -> None:
        raise ZeroDivisionError("oops")

    task.run(parent, refuse, lambda _: None, errors.append)
    qtbot.waitUntil(lambda: len(errors) == 1)
    task.run(parent, break_, lambda _: None, errors.append)
    qtbot.waitUntil(lambda: len(errors) == 2)
    assert errors[0] is told
    assert isinstance(errors[1], EngineError)
    assert "oops" in errors[1].message
    (record,) = caplog.records  # "the log has the details"
    assert record.exc_info is not None
    assert "in break_" in caplog.text


def test_a_cancelled_task_is_silent(qtbot: QtBot) -> None:
    parent = QObject()
    started = threading.Event()
    told: list[object] = []

    def wait(report: object, cancel: CancelToken) -> None:
        started.set()
        while True:
            cancel.check()

    work = task.run(parent, wait, told.append, told.append)
    started.wait(2)
    work.cancel()
    work.join(2)
    qtbot.wait(20)
    assert not told
