"""What holds for every command: one object on stdout, exit statuses, the window without one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

import pytest

from app import paths
from app.cli.tool import COMMANDS
from app.engine import FakeEngine
from tests.cli.support import Slipstream

ROOT = Path(__file__).parents[2]


def test_the_commands_of_this_version() -> None:
    assert list(COMMANDS) == (
        ["ask", "pull", "convert", "models", "remove", "devices", "bench", "selftest"]
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(slipstream: Slipstream, name: str) -> None:
    run = slipstream(name, "--help")
    assert run.status == 0
    assert "--json" in run.out


def test_its_version(slipstream: Slipstream) -> None:
    run = slipstream("--version")
    assert run.status == 0
    assert run.out == (
        f"slipstream {version('slipstream')} (engine {version('llama-cpp-python')})\n"
    )


@pytest.mark.parametrize("arguments", [("--json",), ("fly",), ("ask",), ("models", "extra")])
def test_usage_errors_leave_stdout_empty(slipstream: Slipstream, arguments: tuple[str]) -> None:
    run = slipstream(*arguments)
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("usage: slipstream")


def test_a_fault_of_ours_is_one_object_too(
    slipstream: Slipstream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: FakeEngine) -> None:
        raise ZeroDivisionError("by accident")

    monkeypatch.setattr(FakeEngine, "client", fail)
    run = slipstream("devices", "--json")
    assert run.status == 1
    error = run.json["error"]
    assert (error["kind"], "by accident" in error["message"]) == ("ZeroDivisionError", True)
    assert str(paths.log_file()) in error["remedy"]
    assert [record.message for record in caplog.records] == ["unexpected"]
    assert "ZeroDivisionError" in paths.log_file().read_text(encoding="utf-8")


def test_as_a_process(tmp_path: Path) -> None:
    environment = {paths.HOME_VARIABLE: str(tmp_path), "LC_ALL": "C", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "app", "models", "--json"],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    listed = [model["id"] for model in json.loads(done.stdout)["models"]]
    assert listed[:2] == ["demo", "qwen3.5-4b"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell's pipes")
def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    script = f"{sys.executable} -m app models --json | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env={paths.HOME_VARIABLE: str(tmp_path)},
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT to send")
def test_ctrl_c_in_a_process(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import signal, sys, time
        from app.cli import main
        from app.engine import FakeEngine

        class Slow(FakeEngine):
            def step(self):
                print("waits", file=sys.stderr, flush=True)
                time.sleep(0.05)
                return super().step()

        # A parent that runs in the background may have handed down an ignored Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        engine = Slow()
        engine.script.text = "again and " * 10_000
        sys.exit(main(["ask", "Hello", "--model", sys.argv[1], "--json"], engine=lambda: engine))
        """
    )
    (tmp_path / "target.gguf").touch()
    with subprocess.Popen(
        [sys.executable, "-c", script, tmp_path],
        env={paths.HOME_VARIABLE: str(tmp_path / "home"), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for _ in range(10):  # by then it answers
            process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out)["finish_reason"] == "cancelled"
    assert "Traceback" not in err


@pytest.mark.parametrize("name", ["PySide6", "gguf", "llama_cpp"])
def test_lists_load_nothing_heavy(tmp_path: Path, name: str) -> None:
    code = (
        f"import sys; from app.cli import main; main(['models']); sys.exit({name!r} in sys.modules)"
    )
    environment = {paths.HOME_VARIABLE: str(tmp_path), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
