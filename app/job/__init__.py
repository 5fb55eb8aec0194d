"""From a name to a pair that has been tried: download, convert, verify, load, self-test.

One job a model, with a journal on disk: it may be stopped or killed at any moment, and goes
on where it was. Until its last step is done, no list shows the pair as one to be used.
"""

from __future__ import annotations

from app.job.job import CheckPair, Job, OnState, Tools
from app.job.jobs import Jobs
from app.job.journal import Failure, Journal, Step
from app.job.repair import Repair
from app.job.room import Need
from app.job.state import State

__all__ = [
    "CheckPair",
    "Failure",
    "Job",
    "Jobs",
    "Journal",
    "Need",
    "OnState",
    "Repair",
    "State",
    "Step",
    "Tools",
]
