"""Which device is taken: one rule for who shows it and who loads on it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from app import kept, paths
from app.binding import DeviceInfo, devices, preferred_gpu, speeds
from app.engine import Backend
from app.engine.pair import choose_device, named_device
from app.errors import DeviceError

CPU = DeviceInfo("CPU", "Some CPU", "cpu", 16 << 30, 8 << 30, True)
SMALL = DeviceInfo("CUDA0", "Small", "gpu", 4 << 30, 4 << 30, True)
LARGE = DeviceInfo("CUDA1", "Large", "gpu", 24 << 30, 1 << 30, True)
SOFT = DeviceInfo("Vulkan0", "llvmpipe (LLVM 15.0.6)", "gpu", 64 << 30, 64 << 30, True)
OLD = DeviceInfo("CUDA2", "Old", "gpu", 48 << 30, 0, False, "Its driver is too old.")


@pytest.fixture(autouse=True)
def _own_speeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "cache", lambda: tmp_path)


WITHIN = DeviceInfo("Vulkan0", "Within", "gpu", 64 << 30, 60 << 30, True, integrated=True)
TWIN = DeviceInfo("Vulkan1", "Large", "gpu", 25 << 30, 1 << 30, True, backend="vulkan")


def test_a_card_of_its_own_before_one_within_the_processor() -> None:
    assert preferred_gpu((CPU, WITHIN, SMALL)) is SMALL
    assert preferred_gpu((CPU, WITHIN, SOFT)) is WITHIN
    assert choose_device(Backend.AUTO, (CPU, WITHIN)) == (WITHIN, "")


def test_a_card_that_two_backends_drive_is_taken_by_its_makers() -> None:
    assert preferred_gpu((CPU, TWIN, LARGE)) is LARGE
    assert preferred_gpu((CPU, TWIN, SMALL)) is TWIN


def test_of_one_type_the_faster_by_a_model_that_both_have_run() -> None:
    speeds.remember(SMALL, "a", 60.0)
    assert preferred_gpu((CPU, SMALL, LARGE)) is LARGE  # of which nothing is known
    speeds.remember(LARGE, "b", 20.0)
    assert preferred_gpu((CPU, SMALL, LARGE)) is LARGE  # by another model
    speeds.remember(LARGE, "a", 57.0)
    assert preferred_gpu((CPU, SMALL, LARGE)) is LARGE  # that is no difference
    speeds.remember(SMALL, "a", 70.0)
    for known in ((CPU, SMALL, LARGE), (CPU, LARGE, SMALL)):
        assert preferred_gpu(known) is SMALL
        assert choose_device(Backend.AUTO, known) == (SMALL, "")
    speeds.remember(SMALL, "a", 20.0)  # while a game ran
    assert preferred_gpu((CPU, SMALL, LARGE)) is SMALL


def test_the_slower_of_two_backends_of_one_card_is_left() -> None:
    speeds.remember(LARGE, "a", 100.0)
    speeds.remember(TWIN, "a", 150.0)
    assert preferred_gpu((CPU, TWIN, LARGE)) is TWIN
    speeds.remember(LARGE, "a", 200.0)
    assert preferred_gpu((CPU, TWIN, LARGE)) is LARGE


def test_a_speed_does_not_outweigh_the_type() -> None:
    speeds.remember(WITHIN, "a", 100.0)
    speeds.remember(SMALL, "a", 10.0)
    assert preferred_gpu((CPU, WITHIN, SMALL)) is SMALL


@pytest.mark.parametrize(
    "damaged", ["1", "[]", '{"a": "b"}', '{"a": 0}', '{"a": NaN}', '{"a": 1e999}', '{"a": [2]}']
)
def test_damaged_speeds_are_none(damaged: str) -> None:
    file = f'{{" Large": {{"a": 1.0}}, " Small": {damaged}}}'
    (paths.cache() / "speeds.json").write_text(file, encoding="utf-8")
    assert preferred_gpu((CPU, SMALL, LARGE)) is LARGE
    assert speeds.ratio(SMALL, LARGE) is None


def test_a_device_can_be_named() -> None:
    assert named_device("cuda1", (CPU, SMALL, LARGE)) is LARGE
    with pytest.raises(DeviceError, match="no device `Vulkan7`"):
        named_device("Vulkan7", (CPU, SMALL))
    with pytest.raises(DeviceError, match="driver is too old"):
        named_device("CUDA2", (CPU, OLD))


def test_the_largest_that_can_be_used() -> None:
    assert preferred_gpu((CPU, SMALL, LARGE, OLD)) is LARGE
    assert preferred_gpu((CPU, SOFT, SMALL)) is SMALL
    assert preferred_gpu((CPU, SOFT)) is SOFT
    assert preferred_gpu((CPU, OLD)) is OLD
    assert preferred_gpu((CPU,)) is None


@pytest.mark.parametrize(
    ("known", "backend", "device", "why"),
    [
        ((CPU, SMALL, LARGE), Backend.AUTO, LARGE, ""),
        ((CPU, SMALL, LARGE), Backend.GPU, LARGE, ""),
        ((CPU, SMALL, LARGE), Backend.CPU, CPU, ""),
        ((CPU, OLD), Backend.AUTO, CPU, OLD.reason),
        ((CPU, SOFT), Backend.GPU, SOFT, ""),
        ((CPU,), Backend.AUTO, CPU, ""),
    ],
)
def test_the_engine_takes_it(
    known: tuple[DeviceInfo, ...], backend: Backend, device: DeviceInfo, why: str
) -> None:
    assert choose_device(backend, known) == (device, why)


def test_a_software_renderer_is_never_taken_by_itself() -> None:
    device, why = choose_device(Backend.AUTO, (CPU, SOFT))
    assert device is CPU
    assert "software renderer" in why


def test_without_one_a_gpu_is_refused_with_the_reason() -> None:
    with pytest.raises(DeviceError, match="driver"):
        choose_device(Backend.GPU, (CPU, OLD))


def test_devices_are_told_with_reasons() -> None:
    found = devices()
    assert found[0].kind == "cpu"
    assert any(d.kind == "gpu" for d in found)
    assert all(d.usable or d.reason for d in found)


def test_what_a_share_of_the_layers_gives_is_known_by_what_was_measured() -> None:
    cpu = replace(CPU, backend="cpu")

    def gain(share: float) -> float | None:
        return speeds.expected(SMALL, cpu, "a", share)

    assert gain(0.5) is None
    speeds.remember(SMALL, "a", 40.0)
    assert gain(0.5) is None  # nothing to compare with
    speeds.remember(cpu, "b", 10.0)
    assert gain(0.5) is None  # by another model
    speeds.remember(cpu, "a", 10.0)
    assert gain(1.0) == pytest.approx(4.0)
    # 100 ms a step; half of the layers take 12.5 there and 50 here
    assert gain(0.5) == pytest.approx(100 / 62.5)
    # That it takes 80 is the way to and fro as well: 60 for all layers.
    speeds.remember(SMALL, "a", 1000 / 80, share=0.5)
    assert gain(0.5) == pytest.approx(100 / 80)
    assert gain(0.25) == pytest.approx(100 / 90)
    assert gain(1.0) == pytest.approx(4.0)  # where nothing goes to and fro
    speeds.remember(SMALL, "a", 1000 / 120, share=0.5)  # the last one counts
    assert gain(0.5) == pytest.approx(100 / 120)


def test_what_was_measured_long_ago_keeps_no_card_away(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = replace(CPU, backend="cpu")
    speeds.remember(SMALL, "a", 5.0)  # beside a game, or by an old driver
    speeds.remember(cpu, "a", 10.0)
    assert speeds.expected(SMALL, cpu, "a", 1.0) == pytest.approx(0.5)
    now = time.time()
    for days, known in ((13, True), (15, False)):
        monkeypatch.setattr(time, "time", lambda days=days: now + days * 86_400)
        assert (speeds.expected(SMALL, cpu, "a", 1.0) is not None) == known
    speeds.remember(SMALL, "a", 40.0)
    assert speeds.expected(SMALL, cpu, "a", 1.0) == pytest.approx(4.0)


@pytest.mark.parametrize("damage", [[], {"a": 1}, {"a": [0.0, 1.0]}, {"a": [0.5, 0.0]}])
def test_a_damaged_memory_of_shares_is_none(tmp_path: Path, damage: object) -> None:
    kept.keep(tmp_path / "speeds.json", speeds._in_part(SMALL), damage)
    kept.keep(tmp_path / "speeds.json", speeds._when(SMALL), time.time())
    speeds.remember(CPU, "a", 10.0)
    assert speeds.expected(SMALL, CPU, "a", 0.5) is None
