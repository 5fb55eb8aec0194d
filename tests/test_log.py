"""Diagnostics go to the file and to stderr, never to stdout."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import log

LOGGER = logging.getLogger("app.anything")


@pytest.fixture(autouse=True)
def _stopped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(log.LEVEL_VARIABLE, raising=False)
    yield
    log.stop()


def test_file_and_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state" / "slipstream.log"
    log.start(file)
    LOGGER.info("quiet 😊")
    LOGGER.warning("loud")
    assert capsys.readouterr() == ("", "WARNING: loud\n")
    assert "quiet 😊" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("verbosity", "named", "shown"),
    [(0, "", 1), (1, "", 2), (5, "", 3), (2, "error", 0), (0, "debug", 3), (0, "shout", 1)],
)
def test_levels(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    verbosity: int,
    named: str,
    shown: int,
) -> None:
    monkeypatch.setenv(log.LEVEL_VARIABLE, named)
    log.start(tmp_path / "log", verbosity)
    for level in (logging.DEBUG, logging.INFO, logging.WARNING):
        LOGGER.log(level, "here")
    assert capsys.readouterr().err.count("here") == shown


def test_starting_twice_says_it_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.start(tmp_path / "log")
    log.start(tmp_path / "log")
    LOGGER.warning("once")
    assert capsys.readouterr().err.count("once") == 1


def test_no_stderr_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("sys.stderr", None)
    log.start(tmp_path / "file" / "log")
    LOGGER.warning("into the void")
