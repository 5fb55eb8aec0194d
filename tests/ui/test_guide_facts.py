"""What the built-in guide tells of the app is there: each word of the window, key, command, option,
file and setting that `assets/demo/train/guide.toml` names is looked for in the app itself."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QMenu, QWidget

from app import paths
from app.cli.tool import build_parser
from app.library import ModelState, ModelStatus
from app.passport import Passport
from app.settings import Settings
from app.ui.models.row import ModelRow
from app.ui.window.actions import Topic
from app.ui.window.chat_list import Entry
from app.ui.window.main_window import MainWindow

from .conftest import OpenWindow

ROOT: Final = Path(__file__).resolve().parents[2]
GUIDE: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    (ROOT / "assets/demo/train/guide.toml").read_text(encoding="utf-8")
)
TEXTS: Final = [table[part] for table in GUIDE.values() for part in ("answer", "more")]
BOLD: Final = re.compile(r"\*\*(.+?)\*\*")
CODE: Final = re.compile(r"`([^`]+)`")
KEY: Final = re.compile(
    r"Ctrl\+(?:Shift\+)?(?:[A-Za-z0-9]+|[,=+-])|Shift\+\w+|\bF(?:[1-9]|1[0-2])\b|\bEsc\b"
)
LATER: Final = frozenset(
    (
        *("DFlash on", "DFlash ready", "DFlash paused", "DFlash off", "lossless"),
        *("Drop oldest", "Answer now", "Undo", "Ask again", "not measured yet"),
        *("Pause", "Continue", "Give up", "Show less"),
    )
)
"""Words that are seen in a state which the walk does not reach: they are looked for in the
source of the window."""
FILES: Final = {
    "chats.db": paths.chats_file,
    "settings.toml": paths.settings_file,
    "presets.json": paths.presets_file,
}


def named(pattern: re.Pattern[str]) -> list[str]:
    return sorted({found for text in TEXTS for found in pattern.findall(text)})


class Walk(NamedTuple):
    words: set[str]
    keys: set[str]


def told(thing: QObject) -> Iterator[str]:
    """Every text that one thing of the window shows or speaks."""
    if isinstance(thing, QAbstractButton | QLabel | QAction):
        yield from (thing.text(), thing.toolTip())
    if isinstance(thing, QLineEdit):
        yield thing.placeholderText()
    if isinstance(thing, QMenu):
        yield thing.title()
    if isinstance(thing, QWidget):
        yield thing.accessibleName()


def walk(*roots: QObject) -> set[str]:
    return {
        text
        for root in roots
        for thing in (root, *root.findChildren(QObject))
        for text in told(thing)
    }


@pytest.fixture(scope="module")
def literals() -> set[str]:
    """The strings in the source of the window."""
    return {
        node.value
        for file in (ROOT / "app" / "ui").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def visit(window: MainWindow) -> Walk:
    """The words and keys of a window that has answered, and of all its sheets and menus."""
    window.show_models()
    words = walk(window, window.sheet, window.chat_sheet, window.proof_page)
    for topic in Topic:
        window.help.show_topic(topic)
        words |= walk(window.help)
    got = Passport("got", "A model", "q8_0", "", "2026-01-01", {}, {})
    row = ModelRow(
        ModelStatus("got", "A model", ModelState.READY, path=Path("got"), passport=got), False
    )
    words |= walk(row, row.menu())
    words |= walk(window.sidebar.menu_for(Entry("a", "A chat", 0.0)))
    row.deleteLater()
    keys = {key.toString() for action in window.findChildren(QAction) for key in action.shortcuts()}
    keys |= {key for text in words for key in KEY.findall(text)}  # of fields, in their tooltips
    return Walk(words, keys)


def test_words_and_keys_are_in_the_window(
    open_window: OpenWindow,
    ask: Callable[[MainWindow, str], None],
    literals: set[str],
) -> None:
    window = open_window()
    words = walk(window)  # of an empty chat
    ask(window, "Hello")
    found = visit(window)
    words |= found.words
    assert [word for word in named(BOLD) if word not in words | LATER] == []
    assert sorted(LATER - literals) == []
    assert [key for key in named(KEY) if QKeySequence(key).toString() not in found.keys] == []


def commands() -> dict[str, argparse.ArgumentParser]:
    """The command line, by the name of each command."""
    (choices,) = (
        a.choices for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction)
    )
    return dict(choices)


def options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    return {name: action for action in parser._actions for name in action.option_strings}


def wrong_with(code: str) -> str:
    """Why this piece of code in a fact is none of the app; nothing where it is one."""
    first, *rest = shlex.split(code)
    if first == "slipstream" and rest:
        command, *rest = rest
        if command not in commands():
            return f"{command} is no command"
        known = options(commands()[command])
        return ", ".join(
            f"{command} has no {o}" for o in rest if o.startswith("--") and o not in known
        )
    if first.startswith("--"):
        found = [known[first] for known in map(options, commands().values()) if first in known]
        if not found:
            return f"no command has {first}"
        return (
            ""
            if all(not a.choices or r in a.choices for a in found for r in rest)
            else f"{code}: no such value"
        )
    if first == "python3":
        script, command = rest
        done = subprocess.run(
            [sys.executable, ROOT / script, command, "--help"], capture_output=True, check=False
        )
        return "" if done.returncode == 0 else f"{script} has no {command}"
    if code in FILES:
        return "" if FILES[code]().name == code else f"the file is called {FILES[code]().name}"
    if code in ("languages", "slipstream_<code>.qm", "slipstream"):
        source = (ROOT / "app/ui/look/language.py").read_text(encoding="utf-8")
        return "" if code in source else f"{code} is unknown to the languages"
    return "" if (ROOT / code).exists() else f"there is no {code}"


@pytest.mark.parametrize("code", named(CODE))
def test_commands_options_and_files_are_there(code: str) -> None:
    assert wrong_with(code) == ""


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("slipstream serve", "no command"),
        ("slipstream pull --fast", "has no --fast"),
        ("--backend tpu", "no such value"),
        ("--fly", "no command has"),
        ("python3 dev.py fly", "has no fly"),
        ("chats.json", "there is no"),
    ],
)
def test_what_is_not_there_is_found_out(code: str, part: str) -> None:
    assert part in wrong_with(code)


def test_settings_are_those_of_the_app() -> None:
    first = {field.name: field.default for field in fields(Settings)}
    for topic, table in GUIDE.items():
        settings = table.get("settings", {})
        assert set(settings) <= set(first), topic
        if isinstance(settings, dict):
            assert settings == {name: first[name] for name in settings}, topic


def test_every_setting_is_told_of() -> None:
    told_of = {name for table in GUIDE.values() for name in table.get("settings", ())}
    assert {field.name for field in fields(Settings)} - told_of == {"version"}


def test_what_is_said_to_be_missing_is_missing() -> None:
    missing = [name for table in GUIDE.values() for name in table.get("missing", ())]
    assert missing
    assert not set(missing) & set(commands())


def test_every_command_is_told_of() -> None:
    told_of = {shlex.split(code)[1] for code in named(CODE) if code.startswith("slipstream ")}
    assert told_of == set(commands())


def test_every_action_with_a_key_is_told_of(open_window: OpenWindow) -> None:
    """But for those that a list of the keys, which is told of, is enough for."""
    spared = {"Ctrl+L", "Ctrl+End", "Ctrl++", "Ctrl+-", "Help", "New", "Open", "Find", "Copy"}
    window = open_window()
    listed = set(map(lambda key: QKeySequence(key).toString(), named(KEY)))
    untold = [
        action.text()
        for action in window.findChildren(QAction)
        if (keys := {key.toString() for key in action.shortcuts()} - spared) and not keys & listed
    ]
    assert untold == []
