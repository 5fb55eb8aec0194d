"""Where jobs come from: a folder for models, and what they work with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.catalog import KnownModel
from app.errors import OutputError
from app.job.job import Job, Tools
from app.job.journal import FOLDER


class Jobs:
    """`root` and `tools` are asked each time: the user may choose another folder or token.

    What `root` raises is passed on: `OutputError` where the folder is not there.
    """

    def __init__(self, root: Callable[[], Path], tools: Callable[[], Tools]) -> None:
        self._root, self._tools = root, tools

    def start(
        self,
        model: KnownModel,
        weight_type: str = "",
        recipe: str = "",
        keep_source: bool = False,
    ) -> Job:
        """As `Job.start`."""
        return Job.start(
            self._root(),
            model,
            self._tools(),
            weight_type=weight_type,
            recipe=recipe,
            keep_source=keep_source,
        )

    def going(self, model_id: str) -> Job | None:
        return Job.going(self._root(), model_id, self._tools())

    def move(self, root: Path, but: str = "") -> None:
        """`Job.move` for all that are under way, but that for the model `but`.

        What is in a folder that is not there stays in it.
        """
        try:
            left = self._root()
        except OutputError:
            return
        for work in sorted((left / FOLDER).glob("*/")):
            if work.name != but and (job := self.going(work.name)) is not None:
                job.move(root)
