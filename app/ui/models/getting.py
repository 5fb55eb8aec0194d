"""The one job of getting a model, as the window sees it: one at a time, off the main thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.catalog import KnownModel
from app.errors import OptionError, SlipstreamError
from app.job import Job, Repair, State
from app.jobs import CancelToken
from app.ui import task
from app.ui.models.source import JobSource

_PACE_MS: Final = 150
_LET_GO: Final = 5.0  # seconds for a job that was stopped to leave its files


class Getting(QObject):
    changed = Signal()  # `model`, or how far it is
    ended = Signal(str)  # the id of a model that is ready
    failed = Signal(object)  # SlipstreamError; the journal of the job has it too
    stopped = Signal()  # by the user, or given up

    def __init__(self, jobs: JobSource | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.model, self.title = "", ""
        """Of the job that runs; empty where none does."""
        self.state: State | None = None
        self._jobs = jobs
        self._task: task.Task[Path] | None = None
        self._last: task.Task[Path] | None = None  # that was stopped, and may still be leaving
        self._told: State | None = None  # written by the job's thread
        # Progress is pulled: a job that tells more often costs the window nothing.
        self._timer = QTimer(self, interval=_PACE_MS)
        self._timer.timeout.connect(self._look)

    def get(
        self,
        model: KnownModel,
        weight_type: str = "",
        recipe: str = "",
        keep_source: bool = False,
    ) -> None:
        """Begin, or go on with what was begun for this model."""
        self._start(
            model.id,
            model.title,
            lambda jobs: jobs.start(model, weight_type, recipe, keep_source),
        )

    def go_on(self, model_id: str, title: str, how: Repair | None = None) -> None:
        """Go on with what stands still, after mending it as `how` says."""

        def job_of(jobs: JobSource) -> Job:
            job = jobs.going(model_id)
            if job is None:
                raise OptionError(f"Nothing is under way for {title}.", remedy="Get it anew.")
            if how is not None:
                job.repair(how)
            return job

        self._start(model_id, title, job_of)

    def pause(self) -> None:
        """Stop; what has been done stays."""
        if self._task is not None:
            self._task.cancel()
            self._last, self._task = self._task, None
            self._rest()
            self.stopped.emit()

    def give_up(self, model_id: str) -> None:
        """Nothing stays of it."""
        self.pause()
        last, jobs = self._last, self._jobs

        def discard(progress: Callable[[float], None], cancel: CancelToken) -> None:
            if last is not None:
                last.join(_LET_GO)
            if jobs is not None and (job := jobs.going(model_id)) is not None:
                job.discard()

        task.run(self, discard, lambda _: self.stopped.emit(), self.failed.emit)

    def move(self, root: Path) -> None:
        """Have what stands still go on in another folder for models: see `Job.move`."""
        if self._jobs is not None:
            self._jobs.move(root, but=self.model)

    def close(self, seconds: float) -> None:
        """Stop what runs, waiting for it as long as this; nothing is told any more."""
        self.blockSignals(True)
        self.pause()
        if self._last is not None:
            self._last.join(seconds)

    def _start(self, model_id: str, title: str, job_of: Callable[[JobSource], Job]) -> None:
        if self._task is not None or self._jobs is None:
            return
        jobs, last = self._jobs, self._last

        def work(progress: Callable[[float], None], cancel: CancelToken) -> Path:
            if last is not None:
                last.join(_LET_GO)
            return job_of(jobs).run(self._tell, cancel)

        self.model, self.title, self.state, self._told = model_id, title, None, None
        self._task = task.run(self, work, lambda _: self._end(), self._give_up)
        self._timer.start()
        self.changed.emit()

    def _tell(self, state: State) -> None:
        self._told = state

    def _look(self) -> None:
        if self._told != self.state:
            self.state = self._told
            self.changed.emit()

    def _rest(self) -> None:
        self._timer.stop()
        self._task = None
        self.model, self.title, self.state = "", "", None
        self.changed.emit()

    def _end(self) -> None:
        model = self.model
        self._rest()
        self.ended.emit(model)

    def _give_up(self, error: SlipstreamError) -> None:
        self._rest()
        self.failed.emit(error)
