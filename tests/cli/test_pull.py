"""``slipstream pull`` and ``remove``: the job and the library, from a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import moving, paths, selftest
from app.cli import main, pull
from app.engine import FakeEngine
from app.errors import EngineError, ModelFileError
from app.job import Tools
from app.job.journal import FOLDER
from app.jobs import CancelToken, JobCancelled
from app.library import Library
from app.passport import Check
from tests import hub as faults
from tests.cli.support import Slipstream
from tests.hub import Hub, running
from tests.job.conftest import DEMO

BIG = "model.safetensors"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    monkeypatch.setattr(pull, "Tools", lambda **options: Tools(**options, margin=0))
    (tmp_path / "models").mkdir()
    with running() as hub:
        hub.add("Qwen/Qwen3.5-4B", DEMO / "target")
        hub.add("z-lab/Qwen3.5-4B-DFlash", DEMO / "draft", licence=None)
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub


def test_pulled_listed_and_removed(
    slipstream: Slipstream, hub: Hub, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull, "try_pair", lambda *_: (Check("answers", True, "two"),))
    run = slipstream("pull", "qwen3.5-4b", "--type", "bf16", "--json")
    assert run.status == 0
    assert list(run.json) == ["id", "path", "type", "sources", "files", "checks"]
    assert run.json["type"] == "bf16"
    assert run.json["files"]["draft"]["name"] == "draft-bf16.gguf"
    assert run.json["sources"]["target"]["licence"] == "apache-2.0"
    assert run.json["checks"] == [{"name": "answers", "ok": True, "detail": "two"}]
    (row,) = (m for m in slipstream("models", "--json").json["models"] if m["id"] == "qwen3.5-4b")
    assert (row["state"], row["type"]) == ("ready", "bf16")
    assert row["passport"]["sources"]["target"]["repo"] == "Qwen/Qwen3.5-4B"
    assert slipstream("models", "--verify", "qwen3.5-4b", "--json").json["ok"]
    assert slipstream("pull", "qwen3.5-4b", "--json").json["error"]["kind"] == "OptionError"
    gone: list[Path] = []
    monkeypatch.setattr("app.library._trash", gone.append)
    assert slipstream("remove", "qwen3.5-4b", "--json").json["path"] == str(gone[0])


def test_a_failure_is_said_listed_and_gone_on_from(
    slipstream: Slipstream, hub: Hub, library: Library
) -> None:
    hub.faults["api"] = [faults.status(404)]
    run = slipstream("pull", "qwen3.5-4b", "--no-check", "--json")
    assert (run.status, run.json["error"]["kind"]) == (1, "DownloadError")
    (row,) = (m for m in slipstream("models", "--json").json["models"] if m["id"] == "qwen3.5-4b")
    assert row["state"] == "unfinished"
    assert slipstream("pull", "qwen3.5-4b", "--discard", "--json").json == {
        "discarded": "qwen3.5-4b"
    }
    assert not (library.root / FOLDER / "qwen3.5-4b").exists()


def test_nothing_is_written_where_the_folder_is_not_there(
    slipstream: Slipstream, hub: Hub, library: Library
) -> None:
    library.root.rmdir()
    for argv in (("--json",), ("--discard", "--json")):
        error = slipstream("pull", "qwen3.5-4b", *argv).json["error"]
        assert error["kind"] == "OutputError"
        assert "Connect its drive" in error["remedy"]
    assert not library.root.exists()
    assert not hub.seen


def test_nothing_is_written_where_the_drive_of_the_data_is_not_there(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be taken for the data by the next window."""
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / "home"))
    drive = tmp_path / "drive"
    drive.mkdir()
    paths.config().mkdir(parents=True)
    (paths.config() / "folders.json").write_text(json.dumps({"data": str(drive)}))
    try:
        for argv in (["pull", "qwen3.5-4b"], ["models"], ["ask", "Hi", "--model", "qwen3.5-4b"]):
            main(argv, engine=FakeEngine)
            assert "Connect its drive" in capsys.readouterr().err
        assert not list(drive.iterdir())
        assert not moving.is_there()
    finally:
        paths.use_data(None)


@pytest.mark.parametrize(
    "argv", [(), ("nothing/here",), ("demo",), ("x", "--target", "a/b"), ("--target", "a")]
)
def test_usage(slipstream: Slipstream, argv: tuple[str, ...]) -> None:
    run = slipstream("pull", *argv, "--json")
    assert run.status in (1, 2)
    assert run.out == "" or "error" in run.json


class TestTrying:
    """The self-test in a process of its own."""

    def run(self, tmp_path: Path, script: str) -> tuple[Check, ...]:
        command = (sys.executable, "-c", script)
        return selftest.try_pair(tmp_path, lambda *_: None, CancelToken(), command)

    def test_checks_and_progress(self, tmp_path: Path) -> None:
        script = (
            "import json, sys; print('Loading:  50%', file=sys.stderr);"
            "print(json.dumps({'ok': True, 'checks':"
            " [{'name': 'a', 'ok': True, 'detail': sys.argv[1]}]}))"
        )
        told: list[tuple[float, str]] = []
        checks = selftest.try_pair(
            tmp_path, lambda *now: told.append(now), CancelToken(), (sys.executable, "-c", script)
        )
        assert checks == (Check("a", True, str(tmp_path)),)
        assert told == [(0.15, "loading")]

    def test_a_file_that_kills_the_process(self, tmp_path: Path) -> None:
        with pytest.raises(ModelFileError, match="signal 6"):
            self.run(tmp_path, "import os; os.abort()")

    def test_what_could_not_run(self, tmp_path: Path) -> None:
        with pytest.raises(EngineError, match="no engine"):
            self.run(tmp_path, "import sys; sys.exit('no engine')")

    def test_cancelled(self, tmp_path: Path) -> None:
        token = CancelToken()
        token.cancel()
        command = (sys.executable, "-c", "import time; time.sleep(60)")
        with pytest.raises(JobCancelled):
            selftest.try_pair(tmp_path, lambda *_: None, token, command)
