"""Which model to load, and where: the same choice for the window and the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app import catalog, limits
from app.engine import Backend, KvType, LoadParams
from app.library import Pair

_DEFAULT: Final = LoadParams(Path())


@dataclass(frozen=True, slots=True)
class LoadChoice:
    """What is chosen before there are files: `model` is an id of the library or a folder.

    `draft` False leaves the drafter out; `draft_backend` None puts it beside the target.
    `n_ctx` is the context in tokens, None as many as fit, `threads` None one for each core,
    `kv_type` None as exact as the weights. `device` names one device, in place of `backend`.
    Raises `OptionError` for what cannot be loaded.
    """

    model: str = catalog.DEMO.id
    backend: Backend = Backend.AUTO
    draft: bool = True
    draft_backend: Backend | None = None
    n_ctx: int | None = _DEFAULT.n_ctx
    threads: int | None = _DEFAULT.threads
    kv_type: KvType | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        for name in ("n_ctx", "threads"):
            if (value := getattr(self, name)) is not None:
                limits.check(name, value)

    def params(self, pair: Pair) -> LoadParams:
        """How the files of `pair` are loaded."""
        return LoadParams(
            target=pair.target,
            draft=pair.draft if self.draft else None,
            backend=self.backend,
            n_ctx=self.n_ctx,
            threads=self.threads,
            draft_backend=self.draft_backend,
            kv_type=self.kv_type,
            device=self.device,
        )
