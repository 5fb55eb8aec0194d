"""Which device is taken: one rule for who shows it and who loads on it."""

from __future__ import annotations

import pytest

from app.binding import DeviceInfo, devices, preferred_gpu
from app.engine import Backend
from app.engine.pair import choose_device
from app.errors import DeviceError

CPU = DeviceInfo("CPU", "Some CPU", "cpu", 16 << 30, 8 << 30, True)
SMALL = DeviceInfo("CUDA0", "Small", "gpu", 4 << 30, 4 << 30, True)
LARGE = DeviceInfo("CUDA1", "Large", "gpu", 24 << 30, 1 << 30, True)
OLD = DeviceInfo("CUDA2", "Old", "gpu", 48 << 30, 0, False, "Its driver is too old.")


def test_the_largest_that_can_be_used() -> None:
    assert preferred_gpu((CPU, SMALL, LARGE, OLD)) is LARGE
    assert preferred_gpu((CPU, OLD)) is OLD
    assert preferred_gpu((CPU,)) is None


@pytest.mark.parametrize(
    ("known", "backend", "device", "why"),
    [
        ((CPU, SMALL, LARGE), Backend.AUTO, LARGE, ""),
        ((CPU, SMALL, LARGE), Backend.GPU, LARGE, ""),
        ((CPU, SMALL, LARGE), Backend.CPU, CPU, ""),
        ((CPU, OLD), Backend.AUTO, CPU, OLD.reason),
        ((CPU,), Backend.AUTO, CPU, ""),
    ],
)
def test_the_engine_takes_it(
    known: tuple[DeviceInfo, ...], backend: Backend, device: DeviceInfo, why: str
) -> None:
    assert choose_device(backend, known) == (device, why)


def test_without_one_a_gpu_is_refused_with_the_reason() -> None:
    with pytest.raises(DeviceError, match="driver"):
        choose_device(Backend.GPU, (CPU, OLD))


def test_devices_are_told_with_reasons() -> None:
    found = devices()
    assert found[0].kind == "cpu"
    assert any(d.kind == "gpu" for d in found)
    assert all(d.usable or d.reason for d in found)
