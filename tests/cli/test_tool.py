"""What holds for every command: one object on stdout, exit statuses, the window without one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from app import paths
from app.cli.tool import COMMANDS
from app.engine import FakeEngine
from tests.cli.support import Run, Slipstream

ROOT = Path(__file__).parents[2]
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no disk that is full")


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


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell's redirections")
class TestStreams:
    """What a shell may put in place of a terminal."""

    @pytest.fixture
    def run(self, tmp_path: Path) -> Callable[[str], Run]:
        """A command line for bash, with `slipstream` in it."""
        (tmp_path / "target.gguf").touch()
        script = (
            "import sys; from app.cli import main; from app.engine import FakeEngine;"
            "sys.exit(main(sys.argv[1:], engine=FakeEngine))"
        )
        start = f"slipstream() {{ {sys.executable} -c '{script}' \"$@\"; }}; "

        def run(line: str) -> Run:
            done = subprocess.run(
                ["bash", "-c", start + line],
                cwd=tmp_path,
                env={paths.HOME_VARIABLE: str(tmp_path / "home"), "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                text=True,
            )
            return Run(done.returncode, done.stdout, done.stderr)

        return run

    def test_no_stderr(self, run: Callable[[str], Run]) -> None:
        assert run("slipstream ask Hello --model . --json 2>&-").json["finish_reason"] == "stop"

    def test_no_stdin(self, run: Callable[[str], Run]) -> None:
        done = run("slipstream ask - <&-")
        assert (done.status, "The prompt is empty" in done.err) == (2, True)

    def test_a_stdin_that_cannot_be_read(self, run: Callable[[str], Run]) -> None:
        done = run("slipstream ask - 0> there")
        assert (done.status, "The prompt cannot be read: Bad file descr" in done.err) == (2, True)

    @FULL
    @pytest.mark.parametrize("command", ["models", "models --json", "ask Hello --model ."])
    def test_a_full_disk(self, run: Callable[[str], Run], command: str) -> None:
        done = run(f"slipstream {command} > /dev/full")
        assert done.status == 1
        assert "error: What was to be printed cannot be written: No space left" in done.err
        assert "Traceback" not in done.err

    @FULL
    def test_a_full_disk_for_what_is_beside_an_answer(self, run: Callable[[str], Run]) -> None:
        done = run("slipstream ask Hello --model . 2> /dev/full")
        assert (done.status, done.out) == (0, f"{FakeEngine().script.text}\n")

    def test_a_reader_that_is_gone_for_what_is_beside_an_answer(
        self, run: Callable[[str], Run]
    ) -> None:
        done = run("slipstream ask Hello --model . --json 2>&1 >out | true; echo ${PIPESTATUS[0]}")
        assert done.out == "0\n"
        assert run("cat out").json["finish_reason"] == "stop"

    @pytest.mark.parametrize("end", ["| true", "2>&1 >/dev/null | true"])
    def test_a_reader_that_is_gone_when_it_fails(self, run: Callable[[str], Run], end: str) -> None:
        json = "" if "2>&1" in end else "--json"
        done = run(f"slipstream ask Hello --model none {json} {end}; exit ${{PIPESTATUS[0]}}")
        assert (done.status, done.err) == (1, "")


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
