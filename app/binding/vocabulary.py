"""The vocabulary of a GGUF file alone, as the library splits text by it."""

from __future__ import annotations

from ctypes import byref, c_void_p
from pathlib import Path
from types import TracebackType
from typing import Self

from app.binding.arrays import int32, place, tokens_of
from app.binding.library import library
from app.binding.status import check
from app.binding.structs import Error
from app.errors import OptionError


class NativeVocabulary:
    """Opened without the weights. Raises ModelFileError or UnsupportedModelError."""

    def __init__(self, path: Path) -> None:
        self._lib = library()
        self._handle = c_void_p()
        error = Error()
        check(self._lib.slip_vocab_open(place(path), byref(self._handle), byref(error)), error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lib.slip_vocab_free(self._handle)
        self._handle = c_void_p()

    @property
    def _opened(self) -> c_void_p:
        if not self._handle:
            raise OptionError("The vocabulary is closed.", remedy="Open it again.")
        return self._handle

    def tokenize(self, text: str) -> list[int]:
        """Token ids of `text`; special tokens that it spells come out as such."""

        def call(raw: bytes, length: int, buffer: object, capacity: int) -> int:
            return int(
                self._lib.slip_vocab_tokenize(self._opened, raw, length, 1, buffer, capacity)
            )

        return tokens_of(text, call)

    def is_end(self, token: int) -> bool:
        """Whether `token` ends an answer."""
        return bool(self._lib.slip_vocab_is_end(self._opened, int32(token, "token")))
