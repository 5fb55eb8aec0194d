"""The structs of `slipstream.h`, field for field."""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)

from app.binding.records import ACCEPTANCE_RATES, MAX_BLOCK


class Error(Structure):
    _fields_ = [("status", c_int32), ("message", c_char * 512), ("remedy", c_char * 256)]


class Device(Structure):
    _fields_ = [
        ("name", c_char * 64),
        ("description", c_char * 128),
        ("kind", c_int32),
        ("memory_total", c_uint64),
        ("memory_free", c_uint64),
    ]


LogCallback = CFUNCTYPE(None, c_int32, c_char_p)
ProgressCallback = CFUNCTYPE(c_int32, c_float, c_void_p)


class LoadOptions(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("target", c_char_p),
        ("draft", c_char_p),
        ("device", c_char_p),
        ("draft_device", c_char_p),
        ("kv_type", c_char_p),
        ("n_ctx", c_int32),
        ("n_ubatch", c_int32),
        ("n_threads", c_int32),
        ("draft_rows", c_int32),
        ("least_share", c_float),
        ("progress", ProgressCallback),
        ("user", c_void_p),
    ]


class Memory(Structure):
    _fields_ = [
        (name, c_uint64) for name in ("weights", "mapped", "context", "compute", "drafter", "free")
    ]


class Footprint(Structure):
    _fields_ = [("device", Memory), ("draft_device", Memory), ("host", Memory)]


class Estimate(Structure):
    _fields_ = [("size", c_uint32), ("n_ctx", c_int32), ("footprint", Footprint)]


class Info(Structure):
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
        ("draft_rows", c_int32),
        ("device", Device),
        ("draft_device", Device),
        ("bos", c_int32),
        ("eos", c_int32),
        ("footprint", Footprint),
        ("repairs", c_char * 512),
    ]


class Bias(Structure):
    _fields_ = [("token", c_int32), ("bias", c_float)]


class Sampling(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("verify", c_int32),
        ("temperature", c_float),
        ("top_k", c_int32),
        ("top_p", c_float),
        ("min_p", c_float),
        ("seed", c_uint64),
        ("presence_penalty", c_float),
        ("frequency_penalty", c_float),
        ("repeat_penalty", c_float),
        ("penalty_last_n", c_int32),
        ("biases", POINTER(Bias)),
        ("n_biases", c_int32),
    ]


class Past(Structure):
    _fields_ = [("before", POINTER(c_int32)), ("n_before", c_int32), ("block", POINTER(c_int32))]


class PromptOptions(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("tokens", POINTER(c_int32)),
        ("n_tokens", c_int32),
        ("n_keep", c_int32),
        ("drafting", c_int32),
        ("sampling", Sampling),
    ]


class PromptResult(Structure):
    _fields_ = [("size", c_uint32), ("n_reused", c_int32), ("token", c_int32)]


class RoundResult(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reason", c_int32),
        ("n_drafted", c_int32),
        ("n_accepted", c_int32),
        ("n_own", c_int32),
        ("head_rows", c_int32),
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


class Exactness(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("exact", c_int32),
        ("width", c_int32),
        ("widest", c_int32),
    ]


class Learned(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("common", c_double * ACCEPTANCE_RATES),
        ("hits", c_double * (MAX_BLOCK + 1)),
        ("foreseen", c_double * (MAX_BLOCK + 1)),
    ]


class Costs(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("plain", c_float),
        ("draft", c_float),
        ("draft_one", c_float),
        ("verify", c_float * (MAX_BLOCK + 1)),
    ]


class Rounding(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("n_infinite", c_int64),
        ("error", c_double),
        ("power", c_double),
    ]
