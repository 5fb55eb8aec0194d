"""``slipstream devices``."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.binding import Manifest
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


def test_a_backend_is_added_from_its_archive(
    slipstream: Slipstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[tuple[Path, Path]] = []

    def install(archive: Path, folder: Path) -> Manifest:
        added.append((archive, folder))
        return Manifest("libggml-cuda.so", "this one", ("86-real", "90-real"), {})

    monkeypatch.setattr("app.cli.devices.install_backend", install)
    monkeypatch.setattr("app.cli.devices.backends_folder", lambda: tmp_path / "backends")
    run = slipstream("devices", "--add", "cuda.zip", "--json")
    assert run.status == 0
    assert added == [(Path("cuda.zip"), tmp_path / "backends")]
    assert "libggml-cuda.so for 86-real, 90-real" in run.err
    assert list(run.json) == ["devices"]


def test_an_archive_that_cannot_be_added_ends_it(slipstream: Slipstream, tmp_path: Path) -> None:
    (tmp_path / "cuda.zip").touch()
    run = slipstream("devices", "--add", str(tmp_path / "cuda.zip"), "--json")
    assert run.status == 1
    assert "no whole archive" in run.json["error"]["message"]
