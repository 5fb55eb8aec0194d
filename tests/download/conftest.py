"""A hub with one model, and an empty cache of the hub for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import Hub, empty_cache, running

REPO = "maker/model"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return empty_cache(tmp_path, monkeypatch)


@pytest.fixture
def hub(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": []}')
    (folder / "tokenizer.json").write_text("{}" + " " * 20_000)
    (folder / "README.md").write_text("not needed")
    weights = bytes(range(256)) * 4096
    (folder / "model.safetensors").write_bytes(weights)
    with running() as hub:
        hub.add(REPO, folder)
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub
