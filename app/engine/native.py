"""The native library: the only ctypes in the house.

Declares what `slipstream.h` declares and gives each function a Python face: arrays
in and out, typed errors instead of status codes. The header is the specification.
A library with another ABI number is refused, with its path.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Callable, Sequence
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char,
    c_char_p,
    c_float,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.engine.messages import DeviceInfo
from app.engine.params import LoadParams, Sampling, Verify
from app.engine.stats import WidthReason
from app.errors import (
    ContextFullError,
    DeviceError,
    EngineError,
    ModelFileError,
    NativeLibraryError,
    OptionError,
    PairMismatchError,
    SlipstreamError,
    UnsupportedModelError,
)

ABI: Final = 3
MAX_BLOCK: Final = 64

_CANCELLED: Final = 1
_ERRORS: Final[dict[int, type[SlipstreamError]]] = {
    2: OptionError,
    3: ModelFileError,
    4: UnsupportedModelError,
    5: PairMismatchError,
    6: DeviceError,
    7: DeviceError,
    8: ContextFullError,
    9: EngineError,
}
_REASONS: Final = tuple(WidthReason)
_VERIFY: Final = {Verify.GREEDY: 0, Verify.HOST_SAMPLE: 1, Verify.GPU_SAMPLE: 2}


class Cancelled(Exception):
    """The native call stopped because `NativePair.cancel` was called."""


class _Error(Structure):
    _fields_ = [("status", c_int32), ("message", c_char * 512), ("remedy", c_char * 256)]


class _Device(Structure):
    _fields_ = [
        ("name", c_char * 64),
        ("description", c_char * 128),
        ("kind", c_int32),
        ("memory_total", c_uint64),
        ("memory_free", c_uint64),
    ]


_Progress = CFUNCTYPE(c_int32, c_float, c_void_p)


class _LoadOptions(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("target", c_char_p),
        ("draft", c_char_p),
        ("device", c_char_p),
        ("draft_device", c_char_p),
        ("n_ctx", c_int32),
        ("n_ubatch", c_int32),
        ("n_threads", c_int32),
        ("progress", _Progress),
        ("user", c_void_p),
    ]


class _Info(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("name", c_char * 128),
        ("quantisation", c_char * 32),
        ("target_bytes", c_uint64),
        ("draft_bytes", c_uint64),
        ("n_ctx", c_int32),
        ("n_ubatch", c_int32),
        ("n_vocab", c_int32),
        ("n_embd", c_int32),
        ("n_embd_draft", c_int32),
        ("n_layers", c_int32),
        ("n_layers_device", c_int32),
        ("n_taps", c_int32),
        ("block", c_int32),
        ("device", _Device),
        ("draft_device", _Device),
    ]


class _Sampling(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("verify", c_int32),
        ("temperature", c_float),
        ("top_k", c_int32),
        ("top_p", c_float),
        ("min_p", c_float),
        ("seed", c_uint64),
    ]


class _PromptOptions(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("tokens", POINTER(c_int32)),
        ("n_tokens", c_int32),
        ("n_keep", c_int32),
        ("drafting", c_int32),
        ("sampling", _Sampling),
    ]


class _PromptResult(Structure):
    _fields_ = [("size", c_uint32), ("n_reused", c_int32), ("token", c_int32)]


class _RoundResult(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reason", c_int32),
        ("n_drafted", c_int32),
        ("n_accepted", c_int32),
        ("drafted", c_int32 * MAX_BLOCK),
        ("emitted", c_int32 * (MAX_BLOCK + 1)),
        ("n_syncs", c_int32),
        ("n_graphs_run", c_int32),
        ("n_graphs_rebuilt", c_int32),
        ("bytes_to_host", c_int32),
        ("draft_us", c_int64),
        ("verify_us", c_int64),
        ("host_us", c_int64),
    ]


class _Costs(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("plain", c_float),
        ("draft", c_float),
        ("draft_one", c_float),
        ("verify", c_float * (MAX_BLOCK + 1)),
    ]


@dataclass(frozen=True, slots=True)
class PairInfo:
    """`slip_info` of the header. Sizes in bytes, lengths in tokens."""

    name: str
    quantisation: str
    target_bytes: int
    draft_bytes: int
    n_ctx: int
    n_ubatch: int
    n_vocab: int
    n_embd: int
    n_embd_draft: int
    n_layers: int
    n_layers_device: int
    n_taps: int
    block: int
    device: DeviceInfo
    draft_device: DeviceInfo


@dataclass(frozen=True, slots=True)
class Costs:
    """`slip_costs` of the header: what passes take, in milliseconds.

    `draft` is a draft of the whole block, `draft_one` one with the head for a single token,
    `verify[w]` a verify of w tokens; 0 where it was not measured.
    """

    plain: float
    draft: float
    draft_one: float
    verify: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class NativeRound:
    """`slip_round_result` of the header. Times in microseconds.

    `draft_us` None: not told apart, `verify_us` is the time of draft and verify.
    """

    reason: WidthReason
    drafted: tuple[int, ...]
    emitted: tuple[int, ...]
    syncs: int
    graphs_run: int
    graphs_rebuilt: int
    bytes_to_host: int
    draft_us: int | None
    verify_us: int
    host_us: int


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
        raise NativeLibraryError(
            "The native library is not installed.", remedy="Run `python3 dev.py setup`."
        )
    path = Path(spec.origin).parent / "lib" / name
    if not path.is_file():
        raise NativeLibraryError(
            f"`{path}` is missing: this llama-cpp-python is not Slipstream's.",
            remedy="Run `python3 dev.py setup`, which builds and installs the patched one.",
        )
    return path


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The loaded library, its ABI checked. Raises NativeLibraryError."""
    path = library_path()
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as error:
        raise NativeLibraryError(
            f"`{path}` cannot be loaded: {error}.",
            remedy="Install the system library that it names, or run `python3 dev.py setup`.",
        ) from error
    lib.slip_abi.restype = c_int32
    found = lib.slip_abi()
    if found != ABI:
        raise NativeLibraryError(
            f"`{path}` has ABI {found}; this version of Slipstream needs {ABI}.",
            remedy="Run `python3 dev.py setup` to build the matching library.",
        )
    _declare(lib)
    return lib


def _declare(lib: ctypes.CDLL) -> None:
    pair, tokens, error = c_void_p, POINTER(c_int32), POINTER(_Error)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "slip_version": (c_char_p, []),
        "slip_device_count": (c_int32, []),
        "slip_device_get": (c_int32, [c_int32, POINTER(_Device), error]),
        "slip_load": (c_int32, [POINTER(_LoadOptions), POINTER(pair), error]),
        "slip_free": (None, [pair]),
        "slip_get_info": (c_int32, [pair, POINTER(_Info), error]),
        "slip_chat_template": (c_char_p, [pair]),
        "slip_tokenize": (c_int32, [pair, c_char_p, c_int32, tokens, c_int32]),
        "slip_token_bytes": (c_int32, [pair, c_int32, c_int32, c_char_p, c_int32]),
        "slip_is_end": (c_int32, [pair, c_int32]),
        "slip_prompt": (c_int32, [pair, POINTER(_PromptOptions), POINTER(_PromptResult), error]),
        "slip_round": (c_int32, [pair, c_int32, c_int32, POINTER(_RoundResult), error]),
        "slip_measure_costs": (c_int32, [pair, POINTER(_Costs), error]),
        "slip_set_costs": (c_int32, [pair, POINTER(_Costs), error]),
        "slip_round_given": (c_int32, [pair, tokens, c_int32, POINTER(_RoundResult), error]),
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
                POINTER(_Sampling),
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


def version() -> str:
    """Version of llama.cpp below."""
    return str(library().slip_version().decode())


def devices() -> tuple[DeviceInfo, ...]:
    """What ggml can compute on, the CPU first."""
    lib = library()
    found = []
    for index in range(lib.slip_device_count()):
        device, error = _Device(), _Error()
        _check(lib.slip_device_get(index, byref(device), byref(error)), error)
        found.append(_device_info(device))
    return tuple(found)


def choose(
    logits: NDArray[np.float32],
    verify: Verify,
    sampling: Sampling,
    *,
    seed: int,
    position: int = 0,
    device: str | None = None,
) -> NDArray[np.int32]:
    """Tokens [rows] that a verify would choose for `logits` [rows, vocabulary].

    Row i stands for absolute position `position` + i. `device`: the CPU if None.
    """
    logits = np.ascontiguousarray(logits, dtype=np.float32)
    tokens = np.empty(len(logits), dtype=np.int32)
    error = _Error()
    status = library().slip_choose(
        device.encode() if device else None,
        byref(_sampling(verify, sampling, seed)),
        _floats(logits),
        logits.shape[1],
        len(logits),
        position,
        tokens.ctypes.data_as(POINTER(c_int32)),
        byref(error),
    )
    _check(status, error)
    return tokens


class NativePair:
    """One loaded pair. One thread at a time; `cancel` alone may come from any.

    Every method raises the error of `app.errors` that fits the native status, or
    `Cancelled`.
    """

    def __init__(
        self,
        params: LoadParams,
        device: str | None = None,
        progress: Callable[[float], bool] | None = None,
        draft_device: str | None = None,
    ) -> None:
        """`draft_device` None: the drafter runs where the target does.

        `progress` gets fractions from 0 to 1; False from it cancels the load.
        """
        self._lib = library()
        self._handle = c_void_p()
        callback = _Progress(
            (lambda fraction, _user: int(progress(fraction))) if progress else (lambda *_: 1)
        )
        options = _LoadOptions(
            size=ctypes.sizeof(_LoadOptions),
            target=str(params.target).encode(),
            draft=str(params.draft).encode() if params.draft else None,
            device=device.encode() if device else None,
            draft_device=draft_device.encode() if draft_device else None,
            n_ctx=params.n_ctx,
            n_ubatch=params.n_ubatch,
            n_threads=params.threads or 0,
            progress=callback,
        )
        error = _Error()
        _check(self._lib.slip_load(byref(options), byref(self._handle), byref(error)), error)
        self.info = self._read_info()
        raw = self._lib.slip_chat_template(self._handle)
        self.chat_template: str | None = raw.decode("utf-8") if raw else None

    def close(self) -> None:
        """Frees the pair; a second call does nothing."""
        if self._handle:
            self._lib.slip_free(self._handle)
            self._handle = c_void_p()

    def cancel(self, cancelled: bool) -> None:
        self._lib.slip_cancel(self._handle, int(cancelled))

    # --- text ---

    def tokenize(self, text: str) -> list[int]:
        """Token ids; special tokens written in the text are recognised."""
        raw = text.encode("utf-8")
        capacity = len(raw) + 8  # a token has at least a byte
        buffer = (c_int32 * capacity)()
        n = self._lib.slip_tokenize(self._handle, raw, len(raw), buffer, capacity)
        if not 0 <= n <= capacity:
            raise OptionError("The text is too long to tokenise.", remedy="Shorten it.")
        return list(buffer[:n])

    def token_bytes(self, token: int, *, special: bool = False) -> bytes:
        """Bytes of a token; none for a special one unless `special`."""
        capacity = 64
        while True:
            buffer = ctypes.create_string_buffer(capacity)
            n = self._lib.slip_token_bytes(self._handle, token, int(special), buffer, capacity)
            if n >= 0:
                return buffer.raw[:n]
            capacity = -n

    def is_end(self, token: int) -> bool:
        return bool(self._lib.slip_is_end(self._handle, token))

    # --- decoding ---

    @property
    def position(self) -> int:
        """Tokens the target holds, the anchor not counted."""
        return int(self._lib.slip_position(self._handle))

    def reset(self) -> None:
        self._lib.slip_reset(self._handle)

    def prompt(
        self,
        tokens: Sequence[int],
        *,
        keep: int = 0,
        drafting: bool = True,
        verify: Verify = Verify.GREEDY,
        sampling: Sampling | None = None,
        seed: int = 0,
    ) -> tuple[int, int]:
        """Reads a prompt; returns (first token of the answer, tokens reused)."""
        options = _PromptOptions(
            size=ctypes.sizeof(_PromptOptions),
            tokens=_ints(tokens),
            n_tokens=len(tokens),
            n_keep=keep,
            drafting=int(drafting),
            sampling=_sampling(verify, sampling or Sampling(), seed),
        )
        result, error = _PromptResult(size=ctypes.sizeof(_PromptResult)), _Error()
        status = self._lib.slip_prompt(self._handle, byref(options), byref(result), byref(error))
        _check(status, error)
        return result.token, result.n_reused

    def round(self, n_draft: int, *, governed: bool = False) -> NativeRound:
        """One round with at most `n_draft` drafted tokens; 0 is a plain step.

        `governed`: as many of them as pay, once costs are set.
        """
        return self._round(
            lambda *out: self._lib.slip_round(self._handle, n_draft, int(governed), *out)
        )

    def measure_costs(self) -> Costs:
        """What rounds cost here; takes up to two seconds and forgets all tokens."""
        costs, error = _Costs(size=ctypes.sizeof(_Costs)), _Error()
        _check(self._lib.slip_measure_costs(self._handle, byref(costs), byref(error)), error)
        return Costs(costs.plain, costs.draft, costs.draft_one, tuple(costs.verify))

    def set_costs(self, costs: Costs) -> None:
        raw = _Costs(ctypes.sizeof(_Costs), costs.plain, costs.draft, costs.draft_one)
        raw.verify[: len(costs.verify)] = costs.verify
        error = _Error()
        _check(self._lib.slip_set_costs(self._handle, byref(raw), byref(error)), error)

    def round_given(self, draft: Sequence[int]) -> NativeRound:
        """One round that verifies `draft` instead of the drafter's proposal."""
        given = _ints(draft)
        return self._round(
            lambda *out: self._lib.slip_round_given(self._handle, given, len(draft), *out)
        )

    def _round(self, call: Callable[..., int]) -> NativeRound:
        result, error = _RoundResult(size=ctypes.sizeof(_RoundResult)), _Error()
        _check(call(byref(result), byref(error)), error)
        return NativeRound(
            reason=_REASONS[result.reason],
            drafted=tuple(result.drafted[: result.n_drafted]),
            emitted=tuple(result.emitted[: result.n_accepted + 1]),
            syncs=result.n_syncs,
            graphs_run=result.n_graphs_run,
            graphs_rebuilt=result.n_graphs_rebuilt,
            bytes_to_host=result.bytes_to_host,
            draft_us=result.draft_us if result.draft_us >= 0 else None,
            verify_us=result.verify_us,
            host_us=result.host_us,
        )

    # --- inspection ---

    def eval(self, tokens: Sequence[int], rows: int = 1) -> NDArray[np.float32]:
        """Logits [len(tokens), n_vocab], float32, in passes of `rows` tokens."""
        logits = np.empty((len(tokens), self.info.n_vocab), dtype=np.float32)
        error = _Error()
        status = self._lib.slip_eval(
            self._handle, _ints(tokens), len(tokens), rows, _floats(logits), byref(error)
        )
        _check(status, error)
        return logits

    def last_logits(self, row: int = 0) -> NDArray[np.float32]:
        """Logits [n_vocab], float32, of an output row of the target's last pass."""
        logits = np.empty(self.info.n_vocab, dtype=np.float32)
        error = _Error()
        _check(self._lib.slip_last_logits(self._handle, row, _floats(logits), byref(error)), error)
        return logits

    def eval_draft(
        self, tokens: Sequence[int], anchor: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """One block behind `tokens`, alone: (features [len(tokens), taps * n_embd],
        hidden [block, n_embd_draft]), float32."""
        info = self.info
        features = np.empty((len(tokens), info.n_taps * info.n_embd), dtype=np.float32)
        hidden = np.empty((info.block, info.n_embd_draft), dtype=np.float32)
        error = _Error()
        status = self._lib.slip_eval_draft(
            self._handle,
            _ints(tokens),
            len(tokens),
            anchor,
            _floats(features),
            _floats(hidden),
            byref(error),
        )
        _check(status, error)
        return features, hidden

    def _read_info(self) -> PairInfo:
        raw, error = _Info(size=ctypes.sizeof(_Info)), _Error()
        _check(self._lib.slip_get_info(self._handle, byref(raw), byref(error)), error)
        return PairInfo(
            name=raw.name.decode("utf-8", "replace"),
            quantisation=raw.quantisation.decode(),
            device=_device_info(raw.device),
            draft_device=_device_info(raw.draft_device),
            **{
                field: getattr(raw, field)
                for field in PairInfo.__dataclass_fields__
                if field not in ("name", "quantisation", "device", "draft_device")
            },
        )


def _check(status: int, error: _Error) -> None:
    if status == 0:
        return
    if status == _CANCELLED:
        raise Cancelled
    kind = _ERRORS.get(status, EngineError)
    message = error.message.decode("utf-8", "replace")
    remedy = error.remedy.decode("utf-8", "replace") or "Report this if it comes again."
    raise kind(message, remedy=remedy)


def _device_info(raw: _Device) -> DeviceInfo:
    return DeviceInfo(
        name=raw.name.decode(),
        description=raw.description.decode("utf-8", "replace").strip(),
        kind="gpu" if raw.kind else "cpu",
        memory_total=raw.memory_total,
        memory_free=raw.memory_free,
        usable=True,
    )


def _ints(values: Sequence[int]) -> Any:
    return (c_int32 * len(values))(*values)


def _floats(array: NDArray[np.float32]) -> Any:
    return array.ctypes.data_as(POINTER(c_float))


def _sampling(verify: Verify, sampling: Sampling, seed: int) -> _Sampling:
    return _Sampling(
        size=ctypes.sizeof(_Sampling),
        verify=_VERIFY[verify],
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
        seed=seed,
    )
