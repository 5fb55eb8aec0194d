"""What the installed app does otherwise; in a checkout nothing of it happens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app import frozen


def test_a_checkout_is_started_by_its_interpreter() -> None:
    assert not frozen.IS_FROZEN
    assert frozen.command_line() == (sys.executable, "-m", "app")
    assert "dev.py" in frozen.REPAIR


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("/usr/lib/slipstream/slipstream", "/usr/lib/slipstream/slipstream"),
        ("/apps/Slipstream/slipstreamw.exe", "/apps/Slipstream/slipstream.exe"),
    ],
)
def test_the_installed_app_is_its_own_command_line(
    monkeypatch: pytest.MonkeyPatch, program: str, command: str
) -> None:
    monkeypatch.setattr(frozen, "IS_FROZEN", True)
    monkeypatch.setattr(sys, "executable", program)
    assert frozen.command_line() == (str(Path(command)),)


def test_programs_that_it_starts_load_none_of_its_libraries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frozen, "IS_FROZEN", True)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/lib/slipstream/_internal")
    monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", "/opt/of/the/user")
    monkeypatch.setenv("QT_PLUGIN_PATH", "/usr/lib/slipstream/_internal/PySide6/Qt/plugins")
    frozen.prepare(["ask", "Hello"])
    assert os.environ["LD_LIBRARY_PATH"] == "/opt/of/the/user"
    assert not {"LD_LIBRARY_PATH_ORIG", "QT_PLUGIN_PATH"} & set(os.environ)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/lib/slipstream/_internal")
    frozen.prepare([])
    assert "LD_LIBRARY_PATH" not in os.environ


CLOSED = """
import os, sys
from app import frozen
frozen.prepare([])
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(2, b"what native code says")
os.write(file, b"a chat")
os.close(file)
child = "import os; [os.fstat(number) for number in (0, 1, 2)]"
sys.exit(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", child]))
"""


def test_a_file_that_is_opened_does_not_get_what_is_said_on_closed_streams(tmp_path: Path) -> None:
    """Nor one of a program that is started from there, which has its streams too."""
    script = f'exec "{sys.executable}" -c "$1" "$2" <&- >&- 2>&-'
    file = tmp_path / "chats"
    done = subprocess.run(["/bin/sh", "-c", script, "sh", CLOSED, str(file)], check=False)
    assert done.returncode == 0
    assert file.read_bytes() == b"a chat"
