"""The shared library: where it lies, its ABI number, its functions.

A library with another ABI number is refused, with its path.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib.util
import logging
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_float, c_int32, c_int64, c_void_p
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from app import frozen
from app.binding.structs import (
    Costs,
    Device,
    Error,
    Estimate,
    Exactness,
    Info,
    Learned,
    LoadOptions,
    LogCallback,
    Past,
    PromptOptions,
    PromptResult,
    Rounding,
    RoundResult,
    Sampling,
)
from app.errors import NativeLibraryError

ABI: Final = 11
_INFO, _WARNING = 1, 2  # SLIP_LOG_INFO and SLIP_LOG_WARNING of the header

_native = logging.getLogger("app.native")
_said: Final[deque[str]] = deque(maxlen=20)  # the last lines


def _log_line(_level: int, line: bytes) -> None:
    """What llama.cpp, ggml and their backends say: for the log file. Errors are raised too."""
    text = line.decode("utf-8", "replace")
    _said.append(text)
    _native.info("%s", text)


_on_line = LogCallback(_log_line)  # as long as the library, which keeps no hold of it


def library_path() -> Path:
    """Where the library lies: in the folder of the installed llama_cpp package.

    Found without importing that package, which would load its own bindings.
    Raises NativeLibraryError if it is not there.
    """
    name = {"win32": "slipstream.dll", "darwin": "libslipstream.dylib"}.get(
        sys.platform, "libslipstream.so"
    )
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or spec.origin is None:
        raise NativeLibraryError("The native library is not installed.", remedy=frozen.REPAIR)
    path = Path(spec.origin).parent / "lib" / name
    if not path.is_file():
        raise NativeLibraryError(
            f"`{path}` is missing: this llama-cpp-python is not Slipstream's.",
            remedy=frozen.REPAIR,
        )
    return path


@contextmanager
def talkative() -> Iterator[deque[str]]:
    """What is said meanwhile; all of it goes to the log, not what warns alone, as else: a load has
    500 lines."""
    _said.clear()
    library().slip_set_log(_on_line, _INFO)
    try:
        yield _said
    finally:
        library().slip_set_log(_on_line, _WARNING)


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The loaded library, its ABI checked. Raises NativeLibraryError."""
    path = library_path()
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as error:
        raise NativeLibraryError(
            f"`{path}` cannot be loaded: {error}.",
            remedy=f"If it names a library of the system, install that. Else: {frozen.REPAIR}",
        ) from error
    lib.slip_abi.restype = c_int32
    found = lib.slip_abi()
    if found != ABI:
        raise NativeLibraryError(
            f"`{path}` has ABI {found}; this version of Slipstream needs {ABI}.",
            remedy=frozen.REPAIR,
        )
    _declare(lib)
    lib.slip_set_log(_on_line, _WARNING)
    atexit.register(lib.slip_set_log, LogCallback(), 0)  # what is said later finds no Python
    return lib


def default_threads() -> int:
    """Threads that a load takes on the CPU where none are asked for: by affinity and quota."""
    return int(library().slip_default_threads())


def _declare(lib: ctypes.CDLL) -> None:
    pair, tokens, error = c_void_p, POINTER(c_int32), POINTER(Error)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "slip_set_log": (None, [LogCallback, c_int32]),
        "slip_device_count": (c_int32, []),
        "slip_device_get": (c_int32, [c_int32, POINTER(Device), error]),
        "slip_estimate_load": (c_int32, [POINTER(LoadOptions), POINTER(Estimate), error]),
        "slip_load": (c_int32, [POINTER(LoadOptions), POINTER(pair), error]),
        "slip_free": (None, [pair]),
        "slip_get_info": (c_int32, [pair, POINTER(Info), error]),
        "slip_chat_template": (c_char_p, [pair]),
        "slip_tokenize": (c_int32, [pair, c_char_p, c_int32, tokens, c_int32]),
        "slip_special_tokens": (c_int32, [pair, tokens, c_int32]),
        "slip_token_bytes": (c_int32, [pair, c_int32, c_int32, c_char_p, c_int32]),
        "slip_is_end": (c_int32, [pair, c_int32]),
        "slip_vocab_open": (c_int32, [c_char_p, POINTER(c_void_p), error]),
        "slip_vocab_free": (None, [c_void_p]),
        "slip_vocab_tokenize": (c_int32, [c_void_p, c_char_p, c_int32, c_int32, tokens, c_int32]),
        "slip_vocab_is_end": (c_int32, [c_void_p, c_int32]),
        "slip_row_bytes": (c_int64, [c_char_p, c_int64]),
        "slip_quantize": (
            c_int32,
            [
                c_char_p,
                POINTER(c_float),
                *(c_int64, c_int64),
                c_void_p,
                POINTER(Rounding),
                error,
            ],
        ),
        "slip_prompt": (c_int32, [pair, POINTER(PromptOptions), POINTER(PromptResult), error]),
        "slip_round": (
            c_int32,
            [pair, c_int32, c_int32, tokens, c_int32, POINTER(RoundResult), error],
        ),
        "slip_measure_costs": (c_int32, [pair, POINTER(Costs), error]),
        "slip_probe_exact": (c_int32, [pair, POINTER(Exactness), error]),
        "slip_set_costs": (c_int32, [pair, POINTER(Costs), error]),
        "slip_get_learned": (c_int32, [pair, POINTER(Learned), error]),
        "slip_set_learned": (c_int32, [pair, POINTER(Learned), error]),
        "slip_default_threads": (c_int32, []),
        "slip_round_given": (c_int32, [pair, tokens, c_int32, POINTER(RoundResult), error]),
        "slip_position": (c_int32, [pair]),
        "slip_reset": (None, [pair]),
        "slip_cancel": (None, [pair, c_int32]),
        "slip_eval": (c_int32, [pair, tokens, c_int32, c_int32, POINTER(c_float), error]),
        "slip_last_logits": (c_int32, [pair, c_int32, POINTER(c_float), error]),
        "slip_eval_draft": (
            c_int32,
            [pair, tokens, c_int32, c_int32, POINTER(c_float), POINTER(c_float), error],
        ),
        "slip_choose": (
            c_int32,
            [
                c_char_p,
                POINTER(Sampling),
                POINTER(Past),
                POINTER(c_float),
                *(c_int32, c_int32, c_int32),
                tokens,
                error,
            ],
        ),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
