"""Status codes of the header as the errors of this house."""

from __future__ import annotations

from typing import Final

from app.binding.structs import Error
from app.errors import (
    ContextFullError,
    DeviceError,
    EngineError,
    ModelFileError,
    NonFiniteError,
    OptionError,
    OutOfMemoryError,
    PairMismatchError,
    SlipstreamError,
    UnsupportedModelError,
)
from app.jobs import JobCancelled

_CANCELLED: Final = 1
_ERRORS: Final[dict[int, type[SlipstreamError]]] = {
    2: OptionError,
    3: ModelFileError,
    4: UnsupportedModelError,
    5: PairMismatchError,
    6: DeviceError,
    7: OutOfMemoryError,
    8: ContextFullError,
    9: EngineError,
    10: NonFiniteError,
}


def check(status: int, error: Error) -> None:
    """Raises the error that fits `status`, or `JobCancelled`; nothing where all is well."""
    if status == 0:
        return
    if status == _CANCELLED:
        raise JobCancelled
    kind = _ERRORS.get(status, EngineError)
    message = error.message.decode("utf-8", "replace")
    remedy = error.remedy.decode("utf-8", "replace") or "Report this if it comes again."
    raise kind(message, remedy=remedy)
