"""Stand-ins that the window's tests and the screenshots share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from app.engine import Ask, Command, Decoded, Event, FakeEngine, Script
from app.errors import SlipstreamError
from app.jobs import CancelToken
from app.library import ModelState, ModelStatus, Pair


class BatchEngine(FakeEngine):
    """Gives up to `batch` events a drain, as an engine on its own thread does."""

    def __init__(self, script: Script | None = None, batch: int = 4) -> None:
        super().__init__(script or Script(), batch=batch)

    def hurry(self) -> None:
        """All that is still to come comes at once: what is looked at while it comes was seen."""
        self.batch = 100_000


class PacedEngine(FakeEngine):
    """Gives tokens as they are due: `rate` a second."""

    def __init__(self, script: Script, rate: float) -> None:
        super().__init__(script, batch=1_000)
        self.rate = rate
        self.given = 0
        self.own = 0.0  # seconds that it took of the window's thread
        self.begin()

    def begin(self) -> None:
        """What is due counts from now."""
        self._start, self._before = time.perf_counter(), self.given

    def step(self) -> bool:
        due = self._before + self.rate * (time.perf_counter() - self._start)
        if self.given and self.given >= due:
            return False
        began = time.thread_time()
        more = super().step()
        self.own += time.thread_time() - began
        return more

    def events(self, request: int, command: Command) -> Iterator[Event]:
        if isinstance(command, Ask):
            self.given = 0
            self.begin()
        for event in super().events(request, command):
            if isinstance(event, Decoded):
                self.given += len(event.round.emitted) if event.round else 1
            yield event


class FakeModels:
    """The demo pair, ready; the real one, to be got. Opening waits until `let` is set."""

    root = Path("models")
    problem = ""

    def __init__(self, error: SlipstreamError | None = None, held: bool = False) -> None:
        self.error = error
        self.more: tuple[ModelStatus, ...] = ()
        self.opened: list[str] = []
        self.let = threading.Event()
        if not held:
            self.let.set()

    def place(self) -> Path:
        return self.root

    def models(self) -> tuple[ModelStatus, ...]:
        return (
            ModelStatus("demo", "Built-in guide", ModelState.READY),
            ModelStatus("qwen3.5-4b", "Qwen3.5-4B", ModelState.AVAILABLE),
            *self.more,
        )

    def verify(
        self,
        model: str,
        progress: Callable[[float], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> None:
        if self.error is not None:
            raise self.error

    def remove(self, model: str) -> ModelStatus:
        row = next(row for row in self.more if row.id == model)
        self.more = tuple(other for other in self.more if other is not row)
        return row

    def open(
        self,
        model: str,
        progress: Callable[[float], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> Pair:
        assert self.let.wait(60)
        self.opened.append(model)
        if self.error is not None:
            raise self.error
        return Pair(model, "Built-in guide", Path("target.gguf"), Path("draft.gguf"))
