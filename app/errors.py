"""Every error that Slipstream raises on purpose.

Each names the thing that is wrong (`message`) and what to do about it
(`remedy`); the window shows both, the command line prints both and leaves
with status 1. Lower errors are translated where they arise, with
``raise ... from error``::

    SlipstreamError
    ├── OptionError              a value that cannot be used, or not together
    │   └── NoModelError         the name of a model that is not here, or not whole
    ├── CheckpointError          a Hugging Face folder that is incomplete or broken
    ├── UnsupportedModelError    a model of a kind that Slipstream does not run
    ├── ModelFileError           a GGUF file that is missing, incomplete or foreign
    ├── PairMismatchError        a drafter that does not belong to its target
    ├── AttachmentError          a file that cannot go with a message
    ├── DownloadError            a model that cannot be fetched from the hub
    │   └── AccessError          one that the hub gives only to those it knows
    ├── OutputError              a file or folder that cannot be written
    │   └── NoSpaceError         for want of room on its disk
    ├── HistoryError             chats that cannot be read, kept or taken in
    ├── TemplateError            a chat template that cannot be used on this chat
    ├── ContextFullError         a prompt that does not fit the context
    ├── DeviceError              a device that is absent or that failed
    │   └── OutOfMemoryError     one without the memory that is needed
    ├── NativeLibraryError       the native library is missing or does not match
    └── EngineError              the engine failed in a way that has no better name
        └── NonFiniteError       a model that computes infinity, or no numbers at all
"""

from __future__ import annotations

import re
from typing import Final

_SURROGATES: Final = re.compile("[\ud800-\udfff]")


class SlipstreamError(Exception):
    """Base of all errors here: `message` says what is wrong, `remedy` what to do.

    Both can be shown and written anywhere, whatever path or text they name.
    """

    def __init__(self, message: str, *, remedy: str) -> None:
        message, remedy = valid_text(message), valid_text(remedy)
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments need a say in pickling; errors travel in events.
        return _rebuild, (type(self), self.message, self.remedy)


def _rebuild(kind: type[SlipstreamError], message: str, remedy: str) -> SlipstreamError:
    return kind(message, remedy=remedy)


def valid_text(text: str) -> str:
    """`text` without the lone surrogates of a path that is no UTF-8, which nothing can show."""
    return _SURROGATES.sub("\ufffd", text)


def is_text(value: object) -> bool:
    """JSON can also spell half a character (a lone surrogate), which no file of text can hold."""
    return isinstance(value, str) and not _SURROGATES.search(value)


class OptionError(SlipstreamError):
    """A value that cannot be used, or not together with another."""


class NoModelError(OptionError):
    """The name of a model that is not on this machine, or not finished."""


class CheckpointError(SlipstreamError):
    """A Hugging Face checkpoint folder that is incomplete or broken."""


class UnsupportedModelError(SlipstreamError):
    """A model of an architecture or variant that Slipstream does not run."""


class ModelFileError(SlipstreamError):
    """A GGUF file that is missing, incomplete or foreign."""


class PairMismatchError(SlipstreamError):
    """A drafter that does not belong to its target."""


class AttachmentError(SlipstreamError):
    """A file that cannot go with a message."""


class OutputError(SlipstreamError):
    """A file or folder that cannot be written."""


class NoSpaceError(OutputError):
    """A disk without the room that is needed."""


class DownloadError(SlipstreamError):
    """A model that cannot be fetched from the hub."""


class AccessError(DownloadError):
    """A model that the hub gives only to those it knows."""


class HistoryError(SlipstreamError):
    """Chats that cannot be read, kept or taken in."""


class TemplateError(SlipstreamError):
    """A chat template that cannot be used, or not on this conversation."""


class ContextFullError(SlipstreamError):
    """A prompt that does not fit the context."""


class DeviceError(SlipstreamError):
    """A device that is absent, unusable or that failed."""


class OutOfMemoryError(DeviceError):
    """A device, or the machine, without the memory that a load or an answer needs."""


class NativeLibraryError(SlipstreamError):
    """The native library is missing, cannot be loaded or does not match."""


class EngineError(SlipstreamError):
    """The engine failed in a way that has no better name."""


class NonFiniteError(EngineError):
    """A model that computes infinity, or no numbers at all: no token is its choice."""
