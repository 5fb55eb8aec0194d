"""The vocabulary of a GGUF file alone, as the library splits text by it."""

from __future__ import annotations

import os
from ctypes import byref, c_void_p
from pathlib import Path
from types import TracebackType
from typing import Self

from app.binding.arrays import tokens_of
from app.binding.library import library
from app.binding.status import check
from app.binding.structs import Error


class NativeVocabulary:
    """Opened without the weights. Raises ModelFileError or UnsupportedModelError."""

    def __init__(self, path: Path) -> None:
        self._lib = library()
        self._handle = c_void_p()
        error = Error()
        check(
            self._lib.slip_vocab_open(os.fsencode(path), byref(self._handle), byref(error)), error
        )

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

    def tokenize(self, text: str) -> list[int]:
        """Token ids of `text`; special tokens that it spells come out as such."""

        def call(raw: bytes, length: int, buffer: object, capacity: int) -> int:
            return int(
                self._lib.slip_vocab_tokenize(self._handle, raw, length, 1, buffer, capacity)
            )

        return tokens_of(text, call)

    def is_end(self, token: int) -> bool:
        """Whether `token` ends an answer."""
        return bool(self._lib.slip_vocab_is_end(self._handle, token))
