"""The composer's edges are those of the text, with a scroll bar beside it and without."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QWidget

from app.engine import Script
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine

Ask = Callable[[MainWindow, str], None]


def edges(window: MainWindow, widget: QWidget) -> tuple[int, int]:
    left = widget.mapTo(window, widget.rect().topLeft()).x()
    return left, left + widget.width()


@pytest.mark.parametrize("width", [1_600, 1_280, 640, 380])
def test_the_edges_are_the_texts(
    open_window: OpenWindow, ask: Ask, wait_until: WaitUntil, width: int
) -> None:
    window = open_window(BatchEngine(Script(text="A short answer.")))
    window.resize(width, 640)
    ask(window, "Go")
    answer = window.chats.view.answers[0]
    wait_until(lambda: edges(window, answer) == edges(window, window.composer))
    bar = window.chats.view.verticalScrollBar()
    assert not bar.isVisible()
    before = edges(window, answer)
    for _ in range(12):
        ask(window, "More")
    wait_until(bar.isVisible)
    assert edges(window, window.chats.view.answers[-1]) == before
    assert edges(window, window.composer) == before
