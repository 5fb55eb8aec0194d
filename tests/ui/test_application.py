"""The composition root: it opens the window, and leaves with 0 when it is told to."""

from __future__ import annotations

import os
import signal
import time

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app import log, paths
from app.ui import application
from tests.ui.fakes import BatchEngine, FakeModels


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_closes_it(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    engine = BatchEngine()
    monkeypatch.setattr(application, "Engine", lambda: engine)
    monkeypatch.setattr(application, "Library", lambda root, assets: FakeModels())
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    QTimer.singleShot(300, qapp, lambda: os.kill(os.getpid(), number))
    started = time.monotonic()
    try:
        assert application.run([]) == 0
    finally:
        log.stop()
        for n, handler in before.items():
            signal.signal(n, handler)
    assert time.monotonic() - started < 5
    assert engine.closed
    assert (paths.state() / "window.ini").is_file()
