"""One window a folder: a second start raises the first, hands over files, and leaves.

The lock is the operating system's (a process that died holds none); the name of the local
server follows from the folder, so that other folders have windows of their own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

_WAIT_MS: Final = 2_000
_LEAVES_MS: Final = 12_000
"""For a process that ends: it waits for its engine, and for what it writes."""
_MOST_BYTES: Final = 1 << 20  # of the paths that a start hands over


class Instance(QObject):
    """`first` is False where another process has the folder."""

    raised = Signal(list)  # another start wants to see this one's window, and these files in it

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        self._name = f"slipstream-{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
        self._lock = QLockFile(str(folder / "window.lock"))
        self._lock.setStaleLockTime(0)  # by its process alone, not by its age
        self._server: QLocalServer | None = None
        # Where no lock can be made at all (a folder that is not there, or can only be read), it
        # goes on without.
        locked = self._lock.tryLock(100)
        self.first = locked or self._lock.error() is not QLockFile.LockError.LockFailedError
        if locked:
            self._listen()

    def raise_first(self, files: Sequence[Path] = ()) -> bool:
        """Have the window of the other process come up and take in `files`; False where it does
        not answer."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        answers = socket.waitForConnected(_WAIT_MS)
        if answers:
            socket.write(json.dumps([str(file) for file in files]).encode())
            socket.waitForBytesWritten(_WAIT_MS)
            socket.disconnectFromServer()
        return answers

    def take_over(self, wait_ms: int = _LEAVES_MS) -> None:
        """Become the first where the other process, which is not to be reached, lets go."""
        if self._lock.tryLock(wait_ms):
            self.first = True
            self._listen()

    def leave(self) -> None:
        """Its window closes: a start that comes now waits until it has, and opens its own."""
        if self._server is not None:
            self._server.close()

    def close(self) -> None:
        self.leave()
        if self._server is not None:
            for socket in self._server.findChildren(QLocalSocket):
                socket.blockSignals(True)  # it would be told by one that is gone
        self._lock.unlock()

    def _listen(self) -> None:
        QLocalServer.removeServer(self._name)  # of a process that died
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._connected)
        self._server.listen(self._name)

    def _connected(self) -> None:
        assert self._server is not None
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.disconnected.connect(partial(self._told, socket))
            if socket.state() is QLocalSocket.LocalSocketState.UnconnectedState:  # gone already
                self._told(socket)

    def _told(self, socket: QLocalSocket) -> None:
        """All that a start had to say: it has hung up."""
        said = bytes(socket.read(_MOST_BYTES).data())
        socket.disconnected.disconnect()
        socket.deleteLater()
        try:
            files = [Path(file) for file in json.loads(said)]
        except (ValueError, TypeError):
            files = []
        self.raised.emit(files)
