"""The views of the conversations: each is made when its conversation is first shown."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.conversation import Conversation, Turn
from app.errors import SlipstreamError
from app.ui.chat.live_turn import LiveTurn
from app.ui.chat.view import ChatView
from app.ui.look import announce, words
from app.ui.look.language import tr

KEPT: Final = 4
"""Views of chats that were looked at last; those of others are made again, unless an answer
comes in them or a question is being edited."""


class Chats(QStackedWidget):
    suggested = Signal(str)
    model_wanted = Signal()
    link_chosen = Signal(str)
    wrap_chosen = Signal(bool)
    again_wanted = Signal(object)  # Turn
    go_on_wanted = Signal(object)  # Turn
    shorter_wanted = Signal(object)  # Turn
    edited = Signal(object, str)  # Turn, text
    chosen = Signal(object)  # Turn
    removed = Signal(object)  # Turn
    whole_wanted = Signal()
    focus_left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._views: dict[str, ChatView] = {}  # by the conversation's id, newest last
        self._live: dict[str, LiveTurn] = {}  # by the turn's id
        self._offer = ("", "")
        self._send_with = "enter"

    @property
    def view(self) -> ChatView:
        """The one that is shown."""
        view = self.currentWidget()
        assert isinstance(view, ChatView)
        return view

    def show_conversation(self, conversation: Conversation) -> None:
        view = self._views.pop(conversation.id, None) or self._make()
        self._views[conversation.id] = view
        self.setCurrentWidget(view)
        _show(view, conversation)
        for id_ in [i for i in list(self._views)[:-KEPT] if not _busy(self._views[i])]:
            old = self._views.pop(id_)
            self.removeWidget(old)
            old.deleteLater()

    def offer_model(self, label: str, why: str) -> None:
        """What an empty chat offers: see `Welcome.offer_model`."""
        self._offer = label, why
        for view in self._views.values():
            view.offer_model(label, why)

    def set_send_with(self, key: str) -> None:
        """Of questions that are edited from now on."""
        self._send_with = key

    def show_turns(self, conversation: Conversation) -> None:
        """There are other turns on its path; nothing to do where it is not shown."""
        if (view := self._views.get(conversation.id)) is not None:
            _show(view, conversation)

    def follow(self, live: LiveTurn) -> None:
        """Show the answer while it waits, and while it comes."""
        turn = live.turn
        self._live[turn.id] = live
        live.ended.connect(lambda: self._live.pop(turn.id, None))
        self._announce(live)
        for view in self._views.values():
            view.renew(turn)

    def _announce(self, live: LiveTurn) -> None:
        """Have it said that its text begins, and how it ends."""
        begins = tr("The answer goes on." if live.turn.text else "The answer begins.")

        def begin(text: str, reasoning: str) -> None:
            if text:
                live.grew.disconnect(begin)
                self._say(live, begins)

        def end() -> None:
            error = live.turn.error
            if isinstance(error, SlipstreamError):
                self._say(live, words.quoted(f"{error.message} {error.remedy}"), urgent=True)
            else:
                ended = tr("The answer has ended.")
                self._say(live, f"{ended} {tr(words.finish_note(live.turn))}".strip())

        live.grew.connect(begin)
        live.ended.connect(end)

    def _say(self, live: LiveTurn, text: str, *, urgent: bool = False) -> None:
        chat = live.conversation
        on_view = self._views.get(chat.id) is self.currentWidget()
        announce.say(self, text if on_view else f"“{chat.title}”: {text}", urgent=urgent)

    def _live_of(self, turn: Turn) -> LiveTurn | None:
        return self._live.get(turn.id)

    def _make(self) -> ChatView:
        view = ChatView()
        view.live_of = self._live_of
        view.send_with = lambda: self._send_with
        view.offer_model(*self._offer)
        names = "suggested model_wanted link_chosen again_wanted go_on_wanted edited chosen removed"
        names += " shorter_wanted whole_wanted wrap_chosen focus_left"
        for name in names.split():
            getattr(view, name).connect(getattr(self, name))
        self.addWidget(view)
        return view


def _busy(view: ChatView) -> bool:
    return any(message.busy for message in view.messages)


def _show(view: ChatView, conversation: Conversation) -> None:
    path, given = conversation.path(), conversation.given()
    start = given[0] if given and len(given) < len(path) else None
    view.show_path(path, conversation.beside, start)
