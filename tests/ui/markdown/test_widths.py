"""A page that had other widths while its text came is as one that always had its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import shiboken6
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QScrollBar
from pytestqt.qtbot import QtBot

from app.ui.look.theme import Theme
from app.ui.markdown.formula import typesetter
from app.ui.markdown.markdown_view import MarkdownView
from tests.ui.markdown import grammar
from tests.ui.markdown.test_splits import DOCUMENTS

WIDTHS = st.sampled_from([150, 220, 330, 500, 700])
TABLES = grammar.table().map(lambda lines: "\n".join(lines) + "\n")
TEXTS = st.lists(st.one_of(grammar.documents(), TABLES), min_size=1, max_size=3).map("\n\n".join)


@pytest.fixture
def settled(qtbot: QtBot, look: Theme) -> Callable[[MarkdownView], None]:
    return lambda view: qtbot.waitUntil(
        lambda: view.rendered and not typesetter().busy and not view._highlighter.busy,
        timeout=60_000,
    )


def state(view: MarkdownView) -> tuple[object, ...]:
    QCoreApplication.processEvents()
    bars = [b for b in view.viewport().findChildren(QScrollBar) if b.isVisible()]
    places = sorted((b.geometry().getRect(), b.maximum()) for b in bars)
    return view.document().toHtml(), view.height(), places


@pytest.mark.timeout(600 + DOCUMENTS)
@settings(
    max_examples=max(1, DOCUMENTS // 10),
    derandomize=DOCUMENTS <= 500,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_a_width_leaves_nothing_behind(
    settled: Callable[[MarkdownView], None], data: st.DataObject
) -> None:
    text = data.draw(TEXTS)
    widths = data.draw(st.lists(WIDTHS, min_size=2, max_size=5))
    view, fresh = (MarkdownView("text", lambda: text) for _ in range(2))
    try:
        view.resize(widths[0], 50)
        view.show()
        for at, (start, end) in enumerate(pairwise([0, *data.draw(grammar.cuts(text)), len(text)])):
            view.add(text[start:end])
            QCoreApplication.processEvents()
            view.resize(widths[at % len(widths)], view.height())
        view.finish()
        settled(view)
        view.resize(widths[-1], view.height())
        fresh.resize(widths[-1], 50)
        fresh.show()
        fresh.add(text)
        fresh.finish()
        settled(fresh)
        assert state(view) == state(fresh)
    finally:
        for made in (view, fresh):
            shiboken6.delete(made)
