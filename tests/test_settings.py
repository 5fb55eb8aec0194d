"""Settings survive a round trip, a careless hand and a broken file."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import pytest

from app import settings
from app.errors import OptionError, OutputError
from app.settings import Settings

CHANGED = Settings(
    theme="dark",
    model='C:\\моделі\\"q" 😊\x7f',
    temperature=1e-7,
    seed=2**63 - 1,
    block=8,
    think=True,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "settings.toml"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("value", [Settings(), CHANGED])
def test_saved_is_loaded(file: Path, value: Settings) -> None:
    settings.save(file, value)
    assert settings.load(file) == value
    assert list(file.parent.iterdir()) == [file]


def test_the_file_is_readable(file: Path) -> None:
    settings.save(file, Settings())
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[:4] == ["version = 1", 'theme = "system"', 'model = "demo"', 'backend = "auto"']
    assert not [line for line in lines if line.startswith(("seed", "block"))]


def test_defaults_without_a_file(file: Path) -> None:
    assert settings.load(file) == Settings()
    assert not file.parent.exists()


@pytest.mark.parametrize("content", [b"theme = ", b"\xff\xfe", b"a = 1\na = 2\n"])
def test_a_broken_file_is_set_aside(
    file: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    assert settings.load(file) == Settings()
    assert file.with_name("settings.toml.broken").read_bytes() == content
    assert not file.exists()
    assert "settings.toml.broken" in caplog.text


def test_one_bad_value_costs_one_value(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(file, 'theme = "pink"\ntop_k = 7\ntop_p = nan\nthink = 1\ntemperature = 1\nnew = 3\n')
    assert settings.load(file) == Settings(top_k=7, temperature=1.0)
    assert [r.levelno for r in caplog.records] == [logging.WARNING] * 4
    for name in ("theme", "top_p", "think", "new"):
        assert f"`{name}`" in caplog.text


def test_a_newer_file_is_used_as_far_as_it_goes(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(file, 'version = 99\nbackend = "cpu"\n')
    assert settings.load(file) == Settings(backend="cpu")
    assert "99" in caplog.text


def test_a_folder_in_place_of_the_file(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.mkdir(parents=True)
    assert settings.load(file) == Settings()
    with pytest.raises(OutputError, match=r"settings\.toml"):
        settings.save(file, Settings())
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("top_p", 0.0),
        ("n_ctx", 255),
        ("seed", -1),
        ("block", 0),
        ("verify", "fast"),
        ("top_k", True),
    ],
)
def test_values_are_checked(name: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"`{name}`"):
        dataclasses.replace(Settings(), **{name: value})  # type: ignore[arg-type]


def test_ranges_are_of_settings() -> None:
    assert set(settings.RANGES) <= {f.name for f in dataclasses.fields(Settings)}
