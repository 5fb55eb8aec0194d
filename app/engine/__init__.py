"""The engine's door. Importing it loads no native library.

`Engine` runs one loaded pair on a thread of its own: `submit` takes commands,
`drain` gives the events since the last call. `FakeEngine` is the same door with a
script behind it.
"""

from app.engine.fake import FakeEngine, Script
from app.engine.messages import (
    Answer,
    Ask,
    Cancel,
    ChatMessage,
    Command,
    Compare,
    Compared,
    Control,
    Decoded,
    DeviceInfo,
    Event,
    Failed,
    Finished,
    FinishReason,
    Load,
    Loaded,
    LoadedModel,
    Loading,
    PlainMeasured,
    Prefilled,
    Role,
    Unload,
    Unloaded,
)
from app.engine.params import AskParams, Backend, LoadParams, Sampling, Verify
from app.engine.stats import RoundRecord, RoundTotals, WidthReason, speedup, tokens_per_second
from app.engine.worker import Engine

__all__ = [
    "Answer",
    "Ask",
    "AskParams",
    "Backend",
    "Cancel",
    "ChatMessage",
    "Command",
    "Compare",
    "Compared",
    "Control",
    "Decoded",
    "DeviceInfo",
    "Engine",
    "Event",
    "Failed",
    "FakeEngine",
    "FinishReason",
    "Finished",
    "Load",
    "LoadParams",
    "Loaded",
    "LoadedModel",
    "Loading",
    "PlainMeasured",
    "Prefilled",
    "Role",
    "RoundRecord",
    "RoundTotals",
    "Sampling",
    "Script",
    "Unload",
    "Unloaded",
    "Verify",
    "WidthReason",
    "speedup",
    "tokens_per_second",
]
