"""The one door to the engine: what `Engine` and `FakeEngine` have, and `test_contract` holds.

DESIGN. An engine has any number of clients: the window, the command line, a server. Each
has a stream of its own, with the events of its own requests, in order, and what concerns
everybody: which model is loaded, and how fast it decodes plainly. No client sees another's
requests. Commands of all clients are worked off one after the other, in the order they
were submitted.

The engine gives out the ids, so that they are unique among its clients. Every request
ends with exactly one event of `messages.Ending`, also when it is cancelled and when the
engine is closed. A client that comes late is told first what is loaded.

Nothing is called back: a client drains its stream when it likes, and the engine never
waits for it. All that crosses is frozen and picklable, and behind the door only the
worker touches the pair, so that a process of its own can take the worker's place.
"""

from __future__ import annotations

from typing import Protocol

from app.engine.messages import Command, Event


class Client(Protocol):
    """One user of the engine. Any thread may call; a stream is best drained by one."""

    def submit(self, command: Command) -> int:
        """Queues a command and returns the id of its request. Never waits."""

    def cancel(self, request: int) -> None:
        """Stops a request of this client, whether it runs or still waits.

        Its last event comes soon. One that has ended, or is another's, is left alone.
        """

    def answer_now(self, request: int) -> None:
        """Ends the thinking of an answer of this client's that runs, and has it answer.

        Where it thinks no more, or its model knows no thinking, nothing happens.
        """

    def drain(self) -> list[Event]:
        """The events since the last call, oldest first; returns at once."""

    def wait(self, timeout: float) -> list[Event]:
        """Like `drain`, after waiting up to `timeout` seconds for the first event."""

    def close(self) -> None:
        """Leaves: cancels what this client asked, and drops its events."""


class EngineDoor(Protocol):
    def client(self) -> Client:
        """A new client, whose stream begins with what is loaded, if anything is."""

    def close(self, timeout: float = 5.0) -> None:
        """Cancels what runs and what waits, frees the pair and ends. May be called again.

        Raises EngineError if the engine has not ended within `timeout` seconds.
        """
