"""A second start of one folder raises the first window; another folder has its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.ui.instance import Instance

SECOND = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from app.ui.instance import Instance
app = QCoreApplication([])
instance = Instance(Path(sys.argv[1]))
files = [Path(name) for name in sys.argv[2:]]
print(instance.first, None if instance.first else instance.raise_first(files))
"""


def test_a_second_start_raises_the_first(qtbot: QtBot, tmp_path: Path) -> None:
    first, other = Instance(tmp_path / "a"), Instance(tmp_path / "b")
    assert first.first
    assert other.first
    for files in ([], [tmp_path / "Grüße 1.json", tmp_path / "2.json"]):
        with qtbot.waitSignal(first.raised, timeout=60_000) as raised:
            second = subprocess.Popen(
                [sys.executable, "-c", SECOND, str(tmp_path / "a"), *map(str, files)],
                stdout=subprocess.PIPE,
                text=True,
            )
        assert second.communicate(timeout=60)[0].split() == ["False", "True"]
        assert raised.args == [files]
    first.close()
    again = Instance(tmp_path / "a")
    assert again.first
    for instance in (again, other):
        instance.close()


def test_a_start_while_the_first_closes_waits_for_it(qtbot: QtBot, tmp_path: Path) -> None:
    """It handed over to a window that was going, and none came."""
    first = Instance(tmp_path)
    first.leave()
    code = f"{SECOND}\nsys.stdout.flush()\ninstance.take_over(60_000)\nprint(instance.first)"
    second = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert second.stdout is not None
    assert second.stdout.readline().split() == ["False", "False"]
    first.close()
    assert second.communicate(timeout=60)[0].split() == ["True"]


def test_one_that_died_holds_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    code = SECOND.replace(
        "print(", "import os; os.kill(os.getpid(), 9) if instance.first else print("
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert (tmp_path / "window.lock").exists()
    after = Instance(tmp_path)
    assert after.first
    after.close()


def test_a_folder_that_cannot_be_made(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    instance = Instance(tmp_path / "file" / "state")
    assert instance.first
    instance.close()
