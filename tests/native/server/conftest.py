"""The demo pair, and the server without a drafter that every answer is compared with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.library import Library, Pair
from tests.conftest import ROOT
from tests.native.server.running import Server, arguments


@pytest.fixture(scope="session")
def pair() -> Pair:
    return Library.of_user().open("demo")


@pytest.fixture(scope="session")
def plain(tools: Path, pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("plain") / "log"
    with Server(tools, arguments(pair, draft=False), log) as server:
        yield server


@pytest.fixture(scope="session")
def heldout() -> dict[str, list[Any]]:
    place = ROOT / "assets" / "demo" / "train" / "heldout.json"
    loaded: dict[str, list[Any]] = json.loads(place.read_text("utf-8"))
    return loaded
