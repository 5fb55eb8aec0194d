"""One variable moves everything; without it the folders are the system's."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from app import paths


def test_one_variable_moves_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path))
    assert paths.settings_file() == tmp_path / "config" / "settings.toml"
    assert paths.models() == tmp_path / "data" / "models"
    assert paths.log_file() == tmp_path / "state" / "slipstream.log"
    assert paths.cache() == tmp_path / "cache"
    assert not list(tmp_path.iterdir())


def test_the_systems_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(paths.HOME_VARIABLE, raising=False)
    assert paths.data() == platformdirs.user_data_path("slipstream", appauthor=False)


def test_assets_inside_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "app"
    monkeypatch.setattr(paths, "_PACKAGE", package)
    assert paths.assets() == tmp_path / "assets"
    (package / "assets").mkdir(parents=True)
    assert paths.assets() == package / "assets"


def test_the_home_of_nobody_is_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paths.HOME_VARIABLE, "~nobody-at-all/x")
    assert paths.log_file() == Path.cwd() / "~nobody-at-all" / "x" / "state" / "slipstream.log"
