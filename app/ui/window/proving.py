"""Prove it and Replay: what of the chat on view they are about, and when they make way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.conversation import End, Turn
from app.engine import Figures, LoadedModel
from app.proof import Subject
from app.ui.look.controls import holds_focus
from app.ui.models.loading import Loader
from app.ui.proof.replay import possible
from app.ui.settings.flow import SettingsFlow
from app.ui.window.controller import Controller

if TYPE_CHECKING:
    from app.ui.proof.page import ProofPage

MOST: Final = 512
"""Tokens that are compared at most: plain decoding of a long answer takes its time."""

_UNANSWERED: Final = (End.COMING, End.FAILED)


class Proving(QObject):
    """Shows a page in the place of `chats`. It is made when it is wanted first: seldom, and it
    would take its time of every start."""

    changed = Signal()  # what can be proved or replayed
    focus_left = Signal()  # the page that has it is about to go

    def __init__(
        self,
        controller: Controller,
        loader: Loader,
        flow: SettingsFlow,
        make_page: Callable[[], ProofPage],
        chats: QWidget,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._controller, self._loader, self._flow = controller, loader, flow
        self._make_page, self._chats = make_page, chats
        self._page: ProofPage | None = None
        loader.changed.connect(self._make_way)
        controller.began.connect(lambda live: self.leave())
        controller.book.shown.connect(lambda chat: self.leave())

    @property
    def open(self) -> bool:
        """Whether the page is seen."""
        return self._page is not None and self._page.isVisible()

    @property
    def question(self) -> Turn | None:
        """What can be proved: the newest question of the chat on view, once it is answered."""
        model: LoadedModel | None = self._loader.model
        ready = model is not None and model.has_draft and not self._loader.obstacle
        answer = self._controller.current.last_answer
        answered = answer is not None and answer.said and answer.end not in _UNANSWERED
        return self._controller.current.last_question if ready and answered else None

    @property
    def answer(self) -> Turn | None:
        """What can be replayed: the newest answer, if both speeds are known."""
        answer = self._controller.current.last_answer
        figures = answer.figures if answer else None
        return answer if isinstance(figures, Figures) and possible(figures) else None

    def prove(self) -> None:
        question, model = self.question, self._loader.model
        params = self._controller.ask_params()
        if question is None or model is None or params is None:
            return
        sampling = params.sampling
        if sampling.seed is None:  # both must draw the same
            import secrets

            sampling = replace(sampling, seed=secrets.randbits(32))
        params = replace(params, max_tokens=min(params.max_tokens, MOST), sampling=sampling)
        chat = self._controller.current.messages(question)
        self._open().prove(chat, params, Subject.of(self._loader.in_use, model))

    def replay(self) -> None:
        answer = self.answer
        if answer is None or not isinstance(answer.figures, Figures):
            return
        question = self._controller.current.turns[answer.parent or ""].text
        self._open().replay(question, answer.reasoning, answer.text, answer.figures)

    def leave(self) -> None:
        """Back to the chat."""
        if self._page is None or self._page.isHidden():
            return
        self._page.leave()
        if holds_focus(self._page):
            self.focus_left.emit()
        self._page.hide()
        self._chats.show()

    def _open(self) -> ProofPage:
        if self._page is None:
            self._page = self._make_page()
            self._page.closed.connect(self.leave)
        self._chats.hide()
        self._page.show()
        return self._page

    def _make_way(self) -> None:
        """A load waits for nobody's proof."""
        if self._loader.activity and self._page is not None and self._page.busy:
            self._page.stop()
