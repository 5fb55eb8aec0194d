"""Words in another language: none of the main views' escapes, and a file of Qt's is used."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QTranslator
from PySide6.QtWidgets import QApplication

from app import paths
from app.ui.look import language
from app.ui.look.language import tr
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow
from tests.ui.languages import OPEN, Pseudo, texts, views, write

LRELEASE = Path(sys.executable).with_name("pyside6-lrelease")

Ask = Callable[[MainWindow, str], None]

NAMES = re.compile(
    # What people, models, files and machines are called, figures with their units, and keys.
    r"Slipstream|Built-in guide|Qwen|DFlash|English|GPU|CPU|tok|BF16|Q\d_|F\d\d|px"
    r"|^/|Hello|A block of tokens|^models$|Ctrl\+|Scripted|hf_|llama\.cpp"
    r"|^(Enter|Shift|Page|Tab|Space|Esc)\b|List the planets|Tell me a short story"
)


@pytest.fixture
def pseudo(qapp: QApplication) -> Iterator[Pseudo]:
    translator = Pseudo()
    qapp.installTranslator(translator)
    yield translator
    qapp.removeTranslator(translator)


def test_no_text_of_the_main_views_escapes(
    pseudo: Pseudo, open_window: OpenWindow, ask: Ask
) -> None:
    window = open_window()
    ask(window, "Hello")
    escaped = {
        (name, text)
        for name, view in views(window)
        for text in texts(view)
        if OPEN not in text and re.search(r"[A-Za-z]{3}", text) and not NAMES.search(text)
    }
    assert not sorted(escaped), "\n".join(map(str, sorted(escaped)))


@pytest.fixture
def languages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qapp: QApplication
) -> Iterator[Path]:
    """The folder for the user's own; what is installed goes with the test."""
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path))
    before = set(qapp.findChildren(QTranslator))
    yield tmp_path / "data" / "languages"
    for translator in set(qapp.findChildren(QTranslator)) - before:
        QCoreApplication.removeTranslator(translator)


def test_a_file_of_the_users_own_is_used(languages: Path, qapp: QApplication) -> None:
    languages.mkdir(parents=True)
    assert language.available() == {}
    source = languages / "source.ts"
    write(source, iter(["New chat", "Quit"]))
    text = source.read_text("utf-8").replace(' type="unfinished" />', ">X</translation>", 1)
    source.write_text(text.replace(">X<", ">Neues Gespräch<"), "utf-8")
    made = languages / "slipstream_de.qm"
    subprocess.run([LRELEASE, source, "-qm", made], check=True, capture_output=True)

    assert language.available() == {"de": "Deutsch"}
    language.install("en", qapp)
    assert tr("New chat") == "New chat"
    language.install("de", qapp)
    assert tr("New chat") == "Neues Gespräch"
    assert tr("Quit") == "Quit"  # nobody has translated it yet
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "Abbrechen"


def test_a_language_that_is_not_there_changes_nothing(languages: Path, qapp: QApplication) -> None:
    for code in ("tlh", "de"):
        language.install(code, qapp)
    assert tr("New chat") == "New chat"
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") != "Abbrechen"
    assert tr("") == ""
