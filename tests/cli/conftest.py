"""The tool in this process, over a scripted engine and a library that converts nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import paths
from app.bundled import Bundled
from app.cli import main
from app.engine import FakeEngine
from app.jobs import CancelToken, Progress
from app.library import Library
from tests.cli.support import Run, Slipstream


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def library(tmp_path: Path) -> Library:
    for part in ("target", "draft"):
        folder = tmp_path / "assets" / "demo" / part
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")

    def convert(
        target: Path,
        draft: Path,
        out: Path,
        progress: Progress | None,
        cancel: CancelToken | None,
    ) -> None:
        for part in ("target", "draft"):
            (out / f"{part}-f32.gguf").write_bytes(b"GGUF")

    bundled = Bundled(tmp_path / "assets", tmp_path / "cache", convert=convert)
    return Library(tmp_path / "models", bundled)


@pytest.fixture
def slipstream(
    engine: FakeEngine,
    library: Library,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Slipstream:
    """Runs one command; `SystemExit` of argparse becomes a status, as in a process."""
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / "home"))

    def opened() -> FakeEngine:
        engine.closed = False  # one engine for all calls of a test, so that it can be asked
        return engine

    def run(*argv: str) -> Run:
        try:
            status = main(argv, engine=opened, library=library)
        except SystemExit as leaving:
            status = leaving.code if isinstance(leaving.code, int) else 1
        return Run(status, *capsys.readouterr())

    return run
