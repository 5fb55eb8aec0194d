"""The native library's Python face: the only ctypes in the house.

`slipstream.h` is the specification; this package declares what it declares and gives each
function arrays in and out and typed errors instead of status codes. Importing it loads no
library: the first call does. `inspection` stands apart: only tests look so deep.
"""

from app.binding.addon import Manifest
from app.binding.addon import install as install_backend
from app.binding.backends import backend_libraries, backends_folder
from app.binding.devices import devices, preferred_gpu
from app.binding.library import ABI, default_threads, library_path
from app.binding.pair import NativePair, estimate
from app.binding.quantising import Rounding, quantize, row_bytes
from app.binding.records import (
    MAX_BLOCK,
    DeviceInfo,
    Estimate,
    Exactness,
    Footprint,
    Learned,
    Memory,
    NativeRound,
    PairInfo,
    WidthReason,
)
from app.binding.sampling import PENALTIES, Sampling, Verify
from app.binding.speeds import FASTER
from app.binding.speeds import expected as expected_gain
from app.binding.speeds import remember as remember_speed
from app.binding.vocabulary import NativeVocabulary

__all__ = [
    "ABI",
    "FASTER",
    "MAX_BLOCK",
    "PENALTIES",
    "DeviceInfo",
    "Estimate",
    "Exactness",
    "Footprint",
    "Learned",
    "Manifest",
    "Memory",
    "NativePair",
    "NativeRound",
    "NativeVocabulary",
    "PairInfo",
    "Rounding",
    "Sampling",
    "Verify",
    "WidthReason",
    "backend_libraries",
    "backends_folder",
    "default_threads",
    "devices",
    "estimate",
    "expected_gain",
    "install_backend",
    "library_path",
    "preferred_gpu",
    "quantize",
    "remember_speed",
    "row_bytes",
]
