"""The demo pair on a hub of its own, and a hub's cache and a folder for models that are empty."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.catalog import HubSource, KnownModel
from app.jobs import CancelToken
from app.passport import Made
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


def long_folder(place: Path) -> Path:
    """A folder with a foreign name, in `place`; its path has 250 characters."""
    folder = place / "Загрузки & 'x'" / "模型 😊"
    folder /= "м" * min(100, 250 - len(str(folder)) - 1)  # a name has 255 bytes at most
    while (rest := 250 - len(str(folder))) > 1:
        folder /= "x" * min(100, rest - 1)
    folder.mkdir(parents=True)
    return folder


def quickly(
    target: Path,
    draft: Path | None,
    out: Path,
    weight_type: str,
    recipe: str,
    progress: Callable[[int, int, str], None],
    cancel: CancelToken,
) -> dict[str, Made]:
    """In place of the converter, where that is not what is tested: files named as its own."""
    made = {}
    for done, (role, source) in enumerate({"target": target, "draft": draft}.items()):
        if source is not None:
            cancel.check()
            data = b"GGUF" + hashlib.sha256((source / "model.safetensors").read_bytes()).digest()
            file = out / f"{role}-{weight_type}.gguf"
            file.write_bytes(data)
            digest = hashlib.sha256(data).hexdigest()
            made[role] = Made(file.name, len(data), digest, {"recipe": recipe})
            progress(done + 1, 2, role)
    return made


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
