"""Stand-ins that the window's tests and the screenshots share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from app.engine import FakeEngine, Script
from app.errors import SlipstreamError
from app.jobs import CancelToken
from app.library import ModelState, ModelStatus, Pair


class BatchEngine(FakeEngine):
    """Gives up to `batch` events a drain, as an engine on its own thread does."""

    def __init__(self, script: Script | None = None, batch: int = 4) -> None:
        super().__init__(script or Script(), batch=batch)


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
