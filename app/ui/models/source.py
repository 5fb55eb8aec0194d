"""What the window needs of models: the library has the first, `app.job.Jobs` the second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from app.catalog import KnownModel
from app.job import Job
from app.jobs import CancelToken
from app.library import ModelStatus, Pair


class Models(Protocol):
    root: Path

    @property
    def problem(self) -> str: ...

    def models(self) -> tuple[ModelStatus, ...]: ...

    def open(
        self,
        model: str,
        progress: Callable[[float], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> Pair: ...

    def verify(
        self,
        model: str,
        progress: Callable[[float], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> None: ...

    def remove(self, model: str) -> ModelStatus: ...


class JobSource(Protocol):
    def start(
        self,
        model: KnownModel,
        weight_type: str = "",
        recipe: str = "",
        keep_source: bool = False,
    ) -> Job: ...

    def going(self, model_id: str) -> Job | None: ...

    def move(self, root: Path, but: str = "") -> None: ...
