"""What the window needs of the model library; `app.library.Library` has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from app.jobs import CancelToken
from app.library import ModelStatus, Pair


class Models(Protocol):
    def models(self) -> tuple[ModelStatus, ...]: ...

    def open(
        self,
        model: str,
        progress: Callable[[float], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> Pair: ...
