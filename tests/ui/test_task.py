"""A service runs elsewhere and answers here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
import shiboken6
from PySide6.QtCore import QObject

from app.errors import EngineError, OptionError, SlipstreamError
from app.jobs import CancelToken
from app.ui import task
from tests.ui.conftest import LONGEST_WAIT_MS, WaitUntil

LONGEST_WAIT_S = LONGEST_WAIT_MS / 1000


def test_success_comes_to_the_main_thread(wait_until: WaitUntil) -> None:
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
    wait_until(lambda: bool(came))
    assert came[0] is threading.main_thread()
    assert seen[0] is not came[0]
    assert progress == [0.5]


def test_errors_keep_their_kind_and_faults_get_one(
    wait_until: WaitUntil, caplog: pytest.LogCaptureFixture
) -> None:
    parent = QObject()
    errors: list[SlipstreamError] = []
    told = OptionError("It is wrong.", remedy="Put it right.")

    def refuse(report: object, cancel: object) -> None:
        raise told

    def break_(report: object, cancel: object) -> None:
        raise ZeroDivisionError("oops")

    task.run(parent, refuse, lambda _: None, errors.append)
    wait_until(lambda: len(errors) == 1)
    assert not caplog.records
    task.run(parent, break_, lambda _: None, errors.append)
    wait_until(lambda: len(errors) == 2)
    assert "ZeroDivisionError: oops" in caplog.text
    assert errors[0] is told
    assert isinstance(errors[1], EngineError)
    assert "oops" in errors[1].message


def test_a_cancelled_task_is_silent(wait_until: WaitUntil) -> None:
    parent = QObject()
    reported = threading.Event()
    told: list[object] = []

    def wait(report: Callable[[float], None], cancel: CancelToken) -> None:
        report(0.5)
        reported.set()
        while True:
            cancel.check()

    work = task.run(parent, wait, told.append, told.append, told.append)
    assert reported.wait(LONGEST_WAIT_S)
    work.cancel()  # what it reported is on its way already
    wait_until(lambda: work not in task._running)
    assert not told


def test_a_parent_that_is_gone_is_not_told(wait_until: WaitUntil) -> None:
    """Nor does it matter when it goes: in the middle of the work, or of the telling."""
    told: list[object] = []
    for delay in (0.0, 0.0001, 0.001, 0.01) * 10:
        parent = QObject()
        going = threading.Event()

        def work(report: Callable[[float], None], cancel: CancelToken) -> None:
            going.set()  # noqa: B023 - it runs before the next turn
            report(0.5)

        task.run(parent, work, told.append, told.append, told.append)
        assert going.wait(LONGEST_WAIT_S)
        time.sleep(delay)
        del parent
    wait_until(lambda: not task._running)
    assert not told


def test_work_that_outlives_the_application_is_no_fault() -> None:
    """At the end Qt takes all of its own along; a thread finds out when it wants to tell."""
    gone = threading.Event()

    def work(report: Callable[[float], None], cancel: CancelToken) -> None:
        assert gone.wait(LONGEST_WAIT_S)
        report(0.5)

    running = task.run(QObject(), work, print, print, print)
    thread = running._thread
    shiboken6.delete(running)
    gone.set()
    thread.join(LONGEST_WAIT_S)  # what it raises fails a test
    assert not thread.is_alive()
    task._running.discard(running)
