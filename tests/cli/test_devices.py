"""``slipstream devices``."""

from __future__ import annotations

from app.engine import DeviceInfo, FakeEngine
from tests.cli.support import Slipstream


def test_devices(slipstream: Slipstream, engine: FakeEngine) -> None:
    gpu = DeviceInfo("CUDA0", "Old card", "gpu", 0, 0, False, "the driver is too old", "cuda")
    engine.device_list = (engine.device_list[0], gpu)
    run = slipstream("devices", "--json")
    assert run.status == 0
    assert list(run.json) == ["devices"]
    row = run.json["devices"][1]
    assert row == {
        "name": "CUDA0",
        "kind": "gpu",
        "backend": "cuda",
        "description": "Old card",
        "memory_total": 0,
        "memory_free": 0,
        "usable": False,
        "reason": "the driver is too old",
    }
    assert list(row)[:4] == ["name", "kind", "backend", "description"]
    lines = slipstream("devices").out.splitlines()
    assert lines == [
        "CPU  Scripted CPU (cpu, 8.0 of 16.0 GiB free)  usable",
        "CUDA0  Old card (gpu)  not usable: the driver is too old",
    ]
