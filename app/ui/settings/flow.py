"""The settings in force: who shows one is told when it changes, and the file is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.errors import SlipstreamError
from app.settings import Settings
from app.ui import task


class SettingsFlow(QObject):
    """The one owner of the settings while the window is open.

    A change tells only what changed. It is written by `save` off the main thread, one
    after the other and always the newest; `close` writes what is left.
    """

    changed = Signal(object)  # a frozenset with the names of what changed
    failed = Signal(object)  # SlipstreamError: they could not be written
    saved = Signal()

    def __init__(
        self, settings: Settings, save: Callable[[Settings], None], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.current = settings
        self._saved = settings
        self._save = save
        self._saving: task.Task[None] | None = None

    def change(self, **values: Any) -> None:
        """Raises `OptionError` for a value that cannot be used; nothing changes then."""
        old, self.current = self.current, replace(self.current, **values)
        names = {f.name for f in fields(old)}
        changed = {n for n in names if getattr(old, n) != getattr(self.current, n)}
        if changed:
            self.changed.emit(frozenset(changed))
            self._write()

    def follow(self, name: str, show: Callable[[Any], object]) -> None:
        """Call `show` with the value of `name`: now, and whenever it is another one."""

        def look(changed: frozenset[str]) -> None:
            if name in changed:
                show(getattr(self.current, name))

        self.changed.connect(look)
        show(getattr(self.current, name))

    def save_again(self) -> None:
        """After `failed`."""
        self._write()

    def close(self) -> None:
        """Nothing is lost: what is being written is waited for, what is not is written."""
        if self._saving is not None:
            self._saving.cancel()
            self._saving.join(5.0)
            self._saving = None
        if self._saved != self.current:
            self._save(self.current)

    def _write(self) -> None:
        if self._saving is None and self._saved != self.current:
            settings = self.current
            self._saving = task.run(
                self,
                lambda progress, cancel: self._save(settings),
                lambda _: self._written(settings),
                self._refused,
            )

    def _written(self, settings: Settings) -> None:
        self._saving = None
        self._saved = settings
        self.saved.emit()
        self._write()

    def _refused(self, error: SlipstreamError) -> None:
        """Told once; the next change tries again."""
        self._saving = None
        self.failed.emit(error)
