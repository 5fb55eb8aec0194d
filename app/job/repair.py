"""What can mend a job that failed: one thing that helps, as a button says it."""

from __future__ import annotations

from enum import StrEnum

from app.errors import (
    AccessError,
    CheckpointError,
    DownloadError,
    ModelFileError,
    OutputError,
    PairMismatchError,
    SlipstreamError,
    UnsupportedModelError,
)
from app.job.journal import Step


class Repair(StrEnum):
    RETRY = "retry"
    TOKEN = "token"  # enter one, then try again
    ROOM = "room"  # free some, or choose another folder
    FETCH = "fetch"  # the files again that are not what they should be
    CONVERT = "convert"  # again, from the files that are here
    OTHER = "other"  # choose another model


def repair_of(error: SlipstreamError, step: Step) -> Repair:
    match error:
        case AccessError():
            return Repair.TOKEN
        case OutputError():  # and NoSpaceError
            return Repair.ROOM
        case DownloadError():
            return Repair.RETRY
        case CheckpointError():
            return Repair.FETCH
        case UnsupportedModelError() | PairMismatchError():
            return Repair.OTHER
        case ModelFileError() if step in (Step.VERIFY, Step.CHECK):
            return Repair.CONVERT
    return Repair.RETRY
