"""Notices that a GPU backend came into the folder: one that was still being built at the start."""

from __future__ import annotations

import contextlib

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

from app.engine import backends_folder
from app.errors import NativeLibraryError

_SETTLED_MS = 300  # a folder is made, then filled


class BackendsWatch(QObject):
    changed = Signal()
    """What lies there changed: ask for the devices again."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._settled = QTimer(self, singleShot=True, interval=_SETTLED_MS)
        self._settled.timeout.connect(self._tell)
        self._watcher = QFileSystemWatcher(self)
        self._watcher.directoryChanged.connect(lambda _: self._settled.start())
        self._watch()

    def _watch(self) -> None:
        with contextlib.suppress(NativeLibraryError):  # the load says so
            folder = backends_folder()
            self._watcher.addPaths([str(f) for f in (folder.parent, folder) if f.is_dir()])

    def _tell(self) -> None:
        self._watch()  # the folder may be new
        self.changed.emit()
