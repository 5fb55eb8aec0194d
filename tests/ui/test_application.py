"""The composition root: it opens the window, and leaves with 0 when it is told to."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from PySide6.QtCore import QTimer, qWarning
from PySide6.QtWidgets import QApplication, QProgressDialog

from app import log, paths
from app.settings import Settings
from app.ui import application
from tests.ui.fakes import BatchEngine, FakeModels


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    yield
    log.stop()
    for n, handler in before.items():
        signal.signal(n, handler)


def test_a_start_imports_only_what_it_needs() -> None:
    """Each of these takes 5 to 100 ms, and serves what a user may come to later."""
    later = {
        "app.convert",
        "app.history.exchange",
        "app.selftest",
        "app.ui.models.sheet",
        "app.ui.proof.page",
        "app.ui.settings.sheet",
        "app.ui.window.help",
        "gguf",
        "huggingface_hub",
        "jinja2",
        "multiprocessing",
        "numpy",
        "pygments.lexers",
        "statistics",
        "ziamath",
    }
    code = "import sys, app.ui.application; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not later & set(done.stdout.split())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is one")
def test_without_a_display_it_says_what_needs_none() -> None:
    """Qt would abort the process, with advice about its plugins."""
    named = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    env = {name: value for name, value in os.environ.items() if name not in named}
    done = subprocess.run(
        [sys.executable, "-m", "app"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "slipstream: there is no display; `slipstream ask …` needs none\n"


def test_where_the_chats_should_be_nothing_is_written_while_their_drive_is_not_there(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = tmp_path / "drive"
    drive.mkdir()
    paths.config().mkdir(parents=True)
    (paths.config() / "folders.json").write_text(json.dumps({"data": str(drive)}))
    monkeypatch.setattr(application, "Engine", BatchEngine)
    monkeypatch.setattr(application.Library, "of_user", lambda folder: FakeModels())
    QTimer.singleShot(300, qapp, lambda: os.kill(os.getpid(), signal.SIGTERM))
    try:
        assert application.run([]) == 0
        assert not list(drive.iterdir())
    finally:
        paths.use_data(None)


def test_a_move_that_takes_a_while_is_told(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "Engine", BatchEngine)
    monkeypatch.setattr(application.Library, "of_user", lambda folder: FakeModels())
    told = Event()

    def slowly(chosen: Settings) -> list[str]:
        assert told.wait(60)
        return []

    def look() -> None:
        for widget in qapp.topLevelWidgets():
            if isinstance(widget, QProgressDialog) and widget.isVisible():
                assert "are being moved" in widget.labelText()
                widget.close()  # which moves nothing less
                told.set()
                QTimer.singleShot(600, qapp, lambda: os.kill(os.getpid(), signal.SIGTERM))
                return
        QTimer.singleShot(20, qapp, look)

    monkeypatch.setattr(application.moving, "settle", slowly)
    QTimer.singleShot(20, qapp, look)
    assert application.run([]) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_closes_it(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    engine = BatchEngine()
    monkeypatch.setattr(application, "Engine", lambda: engine)
    monkeypatch.setattr(application.Library, "of_user", lambda folder: FakeModels())
    QTimer.singleShot(300, qapp, lambda: os.kill(os.getpid(), number))
    started = time.monotonic()
    assert application.run([]) == 0
    assert time.monotonic() - started < 5
    assert engine.closed
    assert (paths.state() / "window.ini").is_file()


def test_cycles_are_looked_for_again_once_it_is_open(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "Engine", BatchEngine)
    monkeypatch.setattr(application.Library, "of_user", lambda folder: FakeModels())
    found: list[bool] = []
    QTimer.singleShot(50, qapp, lambda: found.append(gc.isenabled()))
    QTimer.singleShot(60, qapp, lambda: os.kill(os.getpid(), signal.SIGTERM))
    gc.disable()
    try:
        assert application.run([]) == 0
    finally:
        gc.unfreeze()
        gc.enable()
    assert found == [True]


def test_what_slots_and_qt_say_is_in_the_log(
    qapp: QApplication,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path))
    monkeypatch.setattr(application, "Engine", BatchEngine)
    monkeypatch.setattr(application.Library, "of_user", lambda folder: FakeModels())

    def fall_over() -> None:
        raise ZeroDivisionError("oops")

    def warn() -> None:
        qWarning("Qt says so")

    for wait, what in ((50, fall_over), (60, warn)):
        QTimer.singleShot(wait, qapp, what)
    QTimer.singleShot(300, qapp, lambda: os.kill(os.getpid(), signal.SIGTERM))
    application.run([])
    text = paths.log_file().read_text(encoding="utf-8")
    assert "ZeroDivisionError: oops" in text
    assert "in fall_over" in text
    assert "WARNING MainThread app.qt: Qt says so" in text
