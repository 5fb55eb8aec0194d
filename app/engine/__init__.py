"""The engine's door. Importing it loads no native library.

`Engine().client()` is one user's line to a loaded pair that runs beside it: `submit`
takes commands, `drain` gives the events that are this client's. `FakeEngine` is the same
door with a script behind it. `app.engine.door` is the contract of both.
"""

from app.binding import (
    PENALTIES,
    DeviceInfo,
    Sampling,
    Verify,
    WidthReason,
    backends_folder,
    preferred_gpu,
)
from app.engine.door import Client, EngineDoor
from app.engine.engine import Engine
from app.engine.fake import FakeEngine, Script
from app.engine.figures import Figures
from app.engine.messages import (
    Answer,
    Ask,
    Cancelled,
    Command,
    Compare,
    Compared,
    Control,
    Count,
    Counted,
    Decoded,
    Devices,
    Ending,
    Event,
    ExactnessProbed,
    Failed,
    Finished,
    FinishReason,
    ListDevices,
    Load,
    Loaded,
    LoadedModel,
    Loading,
    Measure,
    Measured,
    ModelChanged,
    PlainMeasured,
    Prefilled,
    Reading,
    Shared,
    ThinkingEnd,
    Unload,
    Unloaded,
)
from app.engine.params import AskParams, Backend, KvType, LoadParams
from app.engine.plain import FRESH, Plain, alike
from app.engine.speedup import Speedup, Unmeasured
from app.engine.stats import (
    Origin,
    Pace,
    Rest,
    RoundRecord,
    RoundTally,
    RoundTotals,
    steady,
    tokens_per_second,
)

__all__ = [
    # the door
    "Client",
    "Engine",
    "EngineDoor",
    "FakeEngine",
    "Script",
    # commands
    "Ask",
    "Command",
    "Compare",
    "Count",
    "ListDevices",
    "Load",
    "Measure",
    "Unload",
    # events
    "Cancelled",
    "Compared",
    "Counted",
    "Decoded",
    "Devices",
    "Ending",
    "Event",
    "ExactnessProbed",
    "Failed",
    "Finished",
    "Loaded",
    "Loading",
    "Measured",
    "ModelChanged",
    "PlainMeasured",
    "Shared",
    "Prefilled",
    "Reading",
    "Unloaded",
    # what they carry
    "PENALTIES",
    "Answer",
    "AskParams",
    "Backend",
    "Control",
    "DeviceInfo",
    "Figures",
    "FinishReason",
    "KvType",
    "LoadParams",
    "LoadedModel",
    "Origin",
    "Pace",
    "Plain",
    "Rest",
    "RoundRecord",
    "RoundTally",
    "RoundTotals",
    "Sampling",
    "Speedup",
    "ThinkingEnd",
    "Unmeasured",
    "Verify",
    "WidthReason",
    "FRESH",
    "alike",
    "backends_folder",
    "preferred_gpu",
    "steady",
    "tokens_per_second",
]
