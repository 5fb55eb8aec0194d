"""Where a job is: one bar, and plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.download import Pace
from app.job.journal import Step

_SHARES: Final = {
    Step.LIST: 0.01,
    Step.DOWNLOAD: 0.60,
    Step.CONVERT: 0.22,
    Step.VERIFY: 0.05,
    Step.CHECK: 0.11,
    Step.CLEAN: 0.01,
}
"""Of the bar: about the time that each takes on a usual line."""

WORDS: Final = {
    Step.LIST: "Asking the hub",
    Step.DOWNLOAD: "Downloading",
    Step.CONVERT: "Converting",
    Step.VERIFY: "Verifying",
    Step.CHECK: "Trying it out",
    Step.CLEAN: "Cleaning up",
}


@dataclass(frozen=True, slots=True)
class State:
    """`fraction` is that of the whole job; `detail` is empty where there is nothing to add."""

    step: Step
    fraction: float
    detail: str = ""

    @property
    def words(self) -> str:
        return f"{WORDS[self.step]} · {self.detail}" if self.detail else f"{WORDS[self.step]} …"


def state(step: Step, fraction: float, detail: str = "") -> State:
    """`fraction` is that of the step."""
    steps = list(Step)
    before = sum(_SHARES[one] for one in steps[: steps.index(step)])
    return State(step, before + _SHARES[step] * min(1.0, max(0.0, fraction)), detail)


def downloading(pace: Pace) -> State:
    parts = [f"{size(pace.done, pace.total)} of {size(pace.total)}"]
    if pace.note:
        parts.append(pace.note)
    elif pace.rate is not None:
        parts.append(f"{size(round(pace.rate))}/s")
        if pace.seconds_left is not None:
            parts.append(f"{duration(pace.seconds_left)} left")
    share = pace.done / pace.total if pace.total else 1.0
    return state(Step.DOWNLOAD, share, " · ".join(parts))


def size(octets: int, of: int | None = None) -> str:
    """In the unit of `of`, so that two sizes can be compared."""
    scale = octets if of is None else of
    if scale >= 1e9:
        return f"{octets / 1e9:.1f} GB"
    return f"{octets / 1e6:.0f} MB" if scale >= 1e7 else f"{octets / 1e6:.1f} MB"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
