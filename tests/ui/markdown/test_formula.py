"""Formulas are set off the main thread, drawn in the text's colour, and copied as their source."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.conversation import Conversation
from app.jobs import CancelToken
from app.ui.chat.message import AnswerView
from app.ui.look import theme
from app.ui.look.theme import Theme
from app.ui.markdown import formula as formula_module
from app.ui.markdown.copying import markdown, plain_text
from app.ui.markdown.document import Kind
from app.ui.markdown.formula import SIGN, set_formula, shows, typesetter
from app.ui.markdown.text_view import TextView
from tests.ui.conftest import WaitUntil
from tests.ui.markdown.shown import shown

Show = Callable[[str], TextView]

SOURCES = [
    "$x$",
    "$E = mc^2$",
    "$$\\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}$$",
    "\\(a_i < b\\)",
    "\\[\\boxed{42}\\]",
    "$f(x) = \\begin{cases} x & x > 0 \\\\ -x & \\text{otherwise} \\end{cases}$",
    "$\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}$",
    "$$\n\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}\n$$",
    "$\\lim_{n \\to \\infty} \\mathbb{E}_q\\left[\\log \\frac{p(x)}{q(x)}\\right]$",
]


@pytest.fixture
def show(qtbot: QtBot, look: Theme) -> Show:
    return lambda text: shown(qtbot, text, 700)


def ink(picture: QImage) -> set[str]:
    """The colours of what is wholly painted."""
    pixels = (
        picture.pixelColor(x, y) for x in range(picture.width()) for y in range(picture.height())
    )
    return {QColor(p.rgb()).name() for p in pixels if p.alpha() == 255}


@pytest.mark.parametrize("source", SOURCES)
def test_formulas_are_set(source: str) -> None:
    formula = set_formula(source)
    assert formula is not None
    assert 0 < formula.width < 20
    assert 0 <= formula.below < formula.height < 8


def test_a_formula_is_drawn_and_copied_as_its_source(show: Show, wait_until: WaitUntil) -> None:
    source = "$\\frac{1}{2} + u^2$"
    view = show(f"before {source} after")
    document = view.document()
    assert document.toPlainText() == f"before {SIGN} after"
    wait_until(lambda: typesetter().known(source) is not None)
    end = document.characterCount() - 1
    assert plain_text(document, 0, end) == markdown(document, 0, end) == f"before {source} after"
    assert markdown(document, 3, 9) == f"ore {source} "


def test_what_comes_late_moves_what_stands_below(show: Show, wait_until: WaitUntil) -> None:
    source = "$$\\frac{\\frac{a}{b}}{\\frac{c}{d}} + v$$"
    view = show(f"{source}\n\n```\ncode\n```\n\n> quote\n")
    low = view.height()
    wait_until(lambda: view.height() > low + 10)
    layout, document = view.document().documentLayout(), view.document()
    for i, decoration in enumerate(view._decorations):
        top = layout.blockBoundingRect(document.findBlock(decoration.start)).top()
        header = 36 if decoration.kind is Kind.CODE else 0
        assert view._area(i).top() == top - header


def test_a_formula_stands_on_the_line(show: Show, wait_until: WaitUntil) -> None:
    """Its own base line is that of the text, however far it hangs below."""
    source = "$\\frac{w}{\\frac{y}{z}}$"
    view = show(f"text {source}")
    wait_until(lambda: typesetter().known(source) is not None)
    QCoreApplication.processEvents()
    formula = typesetter().known(source)
    assert formula is not None
    line = view.document().firstBlock().layout().lineAt(0)
    px = 15 * 1.12
    assert line.descent() >= formula.below * px - 1
    assert line.ascent() >= (formula.height - formula.below) * px - 1


@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_it_is_sharp_and_in_the_colour_asked_for(look: Theme, ratio: float) -> None:
    source = "$\\sqrt{x}$"
    typesetter()._known[source] = set_formula(source)
    for colour in ("#1a1a1a", "#e8e8e8"):
        picture = typesetter().picture(source, 40.0, colour, ratio)
        assert picture.devicePixelRatio() == ratio
        formula = typesetter().known(source)
        assert formula is not None
        assert abs(picture.width() - formula.width * 40 * ratio) <= 1
        assert ink(picture) == {colour}


@pytest.mark.parametrize(
    "source", ["$\\frac{1}$", "$\\foo x$", "$\\text{速度} = 1$", "$\\text{<mi>x</mi>}$", "$&$"]
)
def test_what_cannot_be_set_stays_as_it_is_written(
    show: Show, wait_until: WaitUntil, source: str
) -> None:
    view = show(f"a {source} b")
    wait_until(lambda: source in typesetter()._known)
    assert typesetter().known(source) is None
    assert view.grab().toImage() != show("a  b").grab().toImage()
    assert plain_text(view.document(), 0, 5) == f"a {source} b"


def test_what_is_too_long_is_text(look: Theme) -> None:
    assert not shows(f"${'x' * 1_000}$")
    assert not shows("$\\frac{1$")


def test_many_formulas_do_not_hold_the_window(show: Show, wait_until: WaitUntil) -> None:
    """Told in this thread's own processor time: the others' is not the loop's."""
    text = " ".join(f"$\\frac{{q_{{{i}}}}}{{\\sqrt{{{i}}}}}$" for i in range(60))
    worst, view = 0.0, show(text)
    last = "$\\frac{q_{59}}{\\sqrt{59}}$"
    until = time.monotonic() + 60
    while last not in typesetter()._known and time.monotonic() < until:
        began = time.thread_time()
        QCoreApplication.processEvents()
        worst = max(worst, time.thread_time() - began)
        time.sleep(0.001)
    began = time.thread_time()
    view.grab()
    worst = max(worst, time.thread_time() - began)
    assert last in typesetter()._known
    assert worst < 0.1


def test_another_palette_draws_it_in_another_colour(
    show: Show, look: Theme, wait_until: WaitUntil
) -> None:
    source = "$t^2$"
    view = show(source)
    wait_until(lambda: typesetter().known(source) is not None)
    colour = view.document().firstBlock().begin().fragment().charFormat().foreground().color()
    assert colour.name() == QColor(theme.current().text).name()


@pytest.mark.parametrize("size", [40, 10_000])
def test_nothing_moves_when_a_formula_is_set(qtbot: QtBot, look: Theme, size: int) -> None:
    """What stands below one is told when it is set, and where it stands then it stays."""
    sources = (
        rf"$$\frac{{a_{{{size}}}}}{{\sum_{{i=0}}^{{731}} i}}$$",
        rf"\[ M = \begin{{pmatrix}} 1 & {size} \\ 0 & 1 \\ 2 & 3 \end{{pmatrix}} \]",
        rf"\(\frac{{1}}{{\sqrt{{{size}}}}}\)",
    )
    text = "\n\n".join(f"Before.\n\n{s}\n\nBelow {s.strip('$')}, and more." for s in sources)
    text += f"\n\n| a | b |\n|---|---|\n| $\\frac{{x}}{{{size}}}$ | c |\n\nThe end.\n"
    turn = Conversation().answer(Conversation().ask("Go"))
    answer = AnswerView(turn)
    qtbot.addWidget(answer)
    answer.resize(700, 900)
    answer.show()
    document, writer = answer.body.document(), answer.body._writer
    tops: dict[int, float] = {}

    def look_at_it() -> bool:
        QApplication.processEvents()
        block = document.begin()
        while block.isValid() and block.position() + block.length() <= writer._closed_end:
            top = document.documentLayout().blockBoundingRect(block).top()
            assert tops.setdefault(block.position(), top) == pytest.approx(top)
            block = block.next()
        return answer.rendered and not typesetter().busy

    for at in range(0, len(text), size):
        turn.text += text[at : at + size]
        answer.grow(text[at : at + size], "")
        look_at_it()
    answer.finish()
    qtbot.waitUntil(look_at_it, timeout=60_000)
    assert len(tops) > 10
    assert all(typesetter().known(source) for source in sources)


def test_why_formulas_cannot_be_set_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(source: str) -> None:
        raise FileNotFoundError("STIXTwoMath-Regular.ttf")

    monkeypatch.setattr(formula_module, "set_formula", fails)
    monkeypatch.setattr(formula_module._Shared, "told", False)
    assert formula_module._set_some(["$a$", "$b$"], CancelToken()) == {"$a$": None, "$b$": None}
    (record,) = caplog.records
    assert "STIXTwoMath" in caplog.text
    assert "$a$" not in record.getMessage()
