"""How tests wait for events: none is dropped, whatever comes in one batch."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TypeVar

from app.engine import (
    Client,
    Command,
    Devices,
    Ending,
    Event,
    ListDevices,
    Shared,
)

E = TypeVar("E")

PATIENCE = 120.0  # seconds; a busy machine is slow, and no failure


@dataclass(slots=True)
class Listener:
    """A client, and what came of it that nobody has asked for yet."""

    client: Client
    _unread: deque[Event] = field(default_factory=deque)

    def submit(self, command: Command) -> int:
        return self.client.submit(command)

    def cancel(self, request: int) -> None:
        self.client.cancel(request)

    def until(self, *kinds: type, timeout: float = PATIENCE) -> list[Event]:
        """Events up to the first of one of these kinds; what came with it stays unread."""
        events: list[Event] = []
        deadline = time.monotonic() + timeout
        while True:
            while self._unread:
                events.append(self._unread.popleft())
                if isinstance(events[-1], kinds):
                    return events
            if time.monotonic() > deadline:
                raise AssertionError(f"no {kinds} in {events}")
            self._unread.extend(self.client.wait(0.1))

    def first(self, kind: type[E], timeout: float = PATIENCE) -> E:
        """The next event of this kind; those before it are passed over."""
        found = self.until(kind, timeout=timeout)[-1]
        assert isinstance(found, kind)
        return found

    def of(self, request: int, timeout: float = PATIENCE) -> list[Event]:
        """Events of this request up to its last; those of others stay unread, in order."""
        mine: list[Event] = []
        others: list[Event] = []
        deadline = time.monotonic() + timeout
        while not (mine and isinstance(mine[-1], Ending)):
            if not self._unread:
                assert time.monotonic() < deadline, f"no end of {request} in {mine}"
                self._unread.extend(self.client.wait(0.1))
                continue
            event = self._unread.popleft()
            (mine if owner(event) == request else others).append(event)
        self._unread.extendleft(reversed(others))
        return mine

    def run(self, command: Command, timeout: float = PATIENCE) -> Event:
        """How the command ends."""
        return self.of(self.submit(command), timeout)[-1]

    def rest(self) -> list[Event]:
        """What is unread, and what comes of all that was asked before this."""
        last = self.of(self.submit(ListDevices()))
        assert isinstance(last[-1], Devices)
        events = list(self._unread)
        self._unread.clear()
        return events


def owner(event: Event) -> int | None:
    return None if isinstance(event, Shared) else event.request
