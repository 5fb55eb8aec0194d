"""The demo pair on a hub of its own, and a hub's cache and a folder for models that are empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.catalog import HubSource, KnownModel
from tests.hub import Hub, empty_cache, running

DEMO = Path(__file__).resolve().parents[2] / "assets" / "demo"
MODEL = KnownModel(
    "qwen3.5-4b",
    "Qwen3.5-4B",
    "",
    HubSource("Qwen/Qwen3.5-4B"),
    HubSource("z-lab/Qwen3.5-4B-DFlash"),
    "q8_0",
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return empty_cache(tmp_path, monkeypatch)


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    assert MODEL.target
    assert MODEL.draft
    with running() as hub:
        hub.add(MODEL.target.repo, DEMO / "target")
        hub.add(MODEL.draft.repo, DEMO / "draft", licence=None)
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "models"
