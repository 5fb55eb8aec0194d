"""The sheet of one chat, the chat it is of, and the file with the presets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app import presets
from app.conversation import Conversation
from app.errors import SlipstreamError
from app.presets import ChatOptions
from app.ui.settings.chat_sheet import ChatSheet
from app.ui.window.controller import Controller


class Presetting(QObject):
    failed = Signal(object)  # SlipstreamError
    told = Signal(str)  # a sentence about the file
    removed = Signal(str, object)  # a preset's name, and the ChatOptions that it had

    def __init__(
        self, controller: Controller, sheet: ChatSheet, file: Path, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._controller, self._sheet, self._file = controller, sheet, file
        self._presets: dict[str, ChatOptions] | None = None  # not read before they are wanted
        self._shown: Conversation | None = None  # whose options the sheet has
        sheet.changed.connect(lambda options: controller.set_options(options, self._shown))
        sheet.preset_saved.connect(self._save)
        sheet.preset_removed.connect(self._remove)

    def show(self, conversation: Conversation) -> None:
        """The chat on view, when the sheet is opened or another chat is chosen."""
        if self._presets is None:
            found = presets.load(self._file)
            self._presets = found.presets
            self._sheet.show_presets(found.presets)
            if found.problem:
                self.told.emit(found.problem)
        if conversation is self._shown:
            self._sheet.show_options(ChatOptions.of_json(conversation.options))
            return
        self._sheet.keep()  # what was being written is of the chat before
        self._shown = conversation
        self._sheet.show_chat(ChatOptions.of_json(conversation.options))

    def restore(self, name: str, preset: ChatOptions) -> None:
        """Undo that one was removed. One of that name that was saved since stays, which is told."""
        if name in (self._presets or {}):
            self.told.emit(f"A preset “{name}” was saved since: it stays.")
        else:
            self._write({**(self._presets or {}), name: preset})

    def _save(self, name: str) -> None:
        self._write({**(self._presets or {}), name: replace(self._sheet.options, preset=name)})

    def _remove(self, name: str) -> None:
        before = self._presets or {}
        if name in before and self._write({n: p for n, p in before.items() if n != name}):
            self.removed.emit(name, before[name])

    def _write(self, wanted: dict[str, ChatOptions]) -> bool:
        """Whether they could be; that is told where not."""
        try:
            presets.save(self._file, wanted)
        except SlipstreamError as error:
            self.failed.emit(error)
            return False
        self._presets = wanted
        self._sheet.show_presets(wanted)
        return True
