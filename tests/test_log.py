"""Diagnostics go to the file and to stderr, never to stdout."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no disk that is full")
def test_a_full_disk_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").symlink_to("/dev/full")
    log.start(tmp_path / "log")
    for _ in range(3):
        LOGGER.warning("heard")
    log.stop()
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "heard" not in line] == [
        "WARNING: The log cannot be written any more: [Errno 28] No space left on device"
    ]
    assert len(lines) == 4


def test_no_stderr_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("sys.stderr", None)
    log.start(tmp_path / "file" / "log")
    LOGGER.warning("into the void")


class TestNotCaught:
    """Exceptions that nobody caught are in the file, with where they came from."""

    @pytest.fixture(autouse=True)
    def hooks(self) -> Iterator[None]:
        before = sys.excepthook, threading.excepthook, sys.unraisablehook
        yield
        log.stop()
        assert (sys.excepthook, threading.excepthook, sys.unraisablehook) == before

    @pytest.fixture
    def file(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Path:
        file = tmp_path / "slipstream.log"
        log.start(file)
        return file

    def fall_over(self) -> None:
        raise ZeroDivisionError("oops")

    def check(self, file: Path) -> None:
        text = file.read_text(encoding="utf-8")
        assert "ZeroDivisionError: oops" in text
        assert "in fall_over" in text

    def test_in_the_main_thread(self, file: Path) -> None:
        try:
            self.fall_over()
        except ZeroDivisionError as error:  # as the interpreter does when nobody else does
            sys.excepthook(type(error), error, error.__traceback__)
        self.check(file)

    def test_in_a_thread(self, file: Path) -> None:
        thread = threading.Thread(target=self.fall_over, name="worker-7")
        thread.start()
        thread.join()
        self.check(file)
        assert "worker-7" in file.read_text(encoding="utf-8")

    def test_where_it_cannot_be_raised(self, file: Path) -> None:
        class Fragile:
            def __del__(one) -> None:  # noqa: N805
                self.fall_over()

        Fragile()
        self.check(file)

    def test_ctrl_c_is_no_fault(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
        assert "KeyboardInterrupt" in capsys.readouterr().err
        assert file.read_text(encoding="utf-8") == ""


def test_a_path_that_is_no_utf8_can_be_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.start(tmp_path / "log")
    LOGGER.info("caf\udce9")
    assert "caf\\udce9" in (tmp_path / "log").read_text(encoding="utf-8")
    assert capsys.readouterr().err == ""


def test_a_package_that_speaks_through_the_root_does_not_print_ours(tmp_path: Path) -> None:
    script = (
        "import logging, sys\n"
        "from pathlib import Path\n"
        "from app import log\n"
        "log.start(Path(sys.argv[1]))\n"
        "logging.debug('as ziafont does')\n"
        "logging.getLogger('app.convert').debug('ours')\n"
        "logging.getLogger('app.convert').warning('our warning')\n"
        "logging.getLogger('others').info('theirs')\n"
        "logging.getLogger('others').warning('their warning')\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == ["WARNING: our warning", "their warning"]
