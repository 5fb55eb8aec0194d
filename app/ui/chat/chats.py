"""The views of the conversations: each is made when its conversation is first shown."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.conversation import Conversation
from app.ui.chat.live_turn import LiveTurn
from app.ui.chat.view import ChatView


class Chats(QStackedWidget):
    suggested = Signal(str)
    link_chosen = Signal(str)
    again_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._views: dict[str, ChatView] = {}  # by the conversation's id

    @property
    def view(self) -> ChatView:
        """The one that is shown."""
        view = self.currentWidget()
        assert isinstance(view, ChatView)
        return view

    def show_conversation(self, conversation: Conversation) -> None:
        view = self._views.get(conversation.id)
        if view is None:
            view = self._views[conversation.id] = ChatView()
            view.suggested.connect(self.suggested)
            view.link_chosen.connect(self.link_chosen)
            view.again_wanted.connect(self.again_wanted)
            view.show_path(conversation.path())
            self.addWidget(view)
        self.setCurrentWidget(view)

    def show_turns(self, conversation: Conversation) -> None:
        """There are other turns on its path; nothing to do where none was ever shown."""
        if (view := self._views.get(conversation.id)) is not None:
            view.show_path(conversation.path())

    def follow(self, live: LiveTurn) -> None:
        """Show the answer while it waits, and while it comes."""
        for view in self._views.values():
            if (answer := view.answer_of(live.turn)) is not None:
                live.grew.connect(answer.grow)
                live.ended.connect(answer.finish)
