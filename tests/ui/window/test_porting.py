"""Chats as files, and files as chats."""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pypdf import PdfReader
from PySide6.QtWidgets import QApplication

from app.conversation import Conversation
from app.engine import Script
from app.history import exchange
from app.ui.look.notice import Notice
from app.ui.window.main_window import MainWindow
from app.ui.window.porting import SUFFIXES, as_pdf, file_name
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine

Ask = Callable[[MainWindow, str], None]

BEGINS = {"markdown": b"# ", "json": b"{", "html": b"<!DOCTYPE html>", "pdf": b"%PDF-"}


def test_a_chat_goes_out_and_comes_in(
    open_window: OpenWindow, ask: Ask, tmp_path: Path, wait_until: WaitUntil
) -> None:
    window = open_window(BatchEngine(Script(text="An **answer**.")))
    ask(window, "What is this?")
    chat = window.controller.current
    for kind, suffix in SUFFIXES.items():
        path = tmp_path / f"chat{suffix}"
        window.porting.export(chat, kind, path)
        wait_until(path.exists)
        assert path.read_bytes().startswith(BEGINS[kind])
    window.porting.take_in(tmp_path / f"chat{SUFFIXES['json']}")
    wait_until(lambda: window.controller.current is not chat)
    assert [t.text for t in window.controller.current.path()] == ["What is this?", "An **answer**."]
    assert len(window.controller.book.summaries) == 2
    window.porting.take_in(tmp_path / "chat.pdf")
    wait_until(lambda: any("no JSON" in n.message for n in window.findChildren(Notice)))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_of_a_pdf_can_be_read_on_white_paper(
    open_window: OpenWindow, ask: Ask, tmp_path: Path, wait_until: WaitUntil, theme: str
) -> None:
    window = open_window(BatchEngine(Script(text="See [here](https://example.org).")), theme=theme)
    ask(window, "Where?")
    path = tmp_path / "chat.pdf"
    window.porting.export(window.controller.current, "pdf", path)
    wait_until(path.exists)
    page = PdfReader(path).pages[0].get_contents()
    assert page is not None
    inks = re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) scn", page.get_data())
    assert len(set(inks)) == 2  # of text and of links
    assert all(float(part) < 0.6 for ink in inks for part in ink)
    window._look.choose("light")


def pdf_lines(qapp: QApplication, table: str) -> int:
    """Of a page with this table."""
    chat = Conversation()
    chat.answer(chat.ask("?")).text = table
    page = PdfReader(io.BytesIO(as_pdf(exchange.as_html(chat)))).pages[0].get_contents()
    assert page is not None
    return len(re.findall(rb" (?:re|l)\n", page.get_data()))


def test_an_aligned_column_keeps_its_borders(qapp: QApplication) -> None:
    plain = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    lines = pdf_lines(qapp, plain)
    assert lines > pdf_lines(qapp, "a b")
    assert pdf_lines(qapp, plain.replace("---|\n", "--:|\n")) == lines


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("a/b: c?", "a b c"),
        ("...", "Chat"),
        ("日本", "日本"),
        ("x" * 200, "x" * 80),
        ("😀" * 90, "😀" * 50),
        ("con", "Chat con"),
    ],
)
def test_a_title_as_the_name_of_a_file(title: str, name: str) -> None:
    assert file_name(title) == name


def test_a_name_that_is_too_long_is_told(
    open_window: OpenWindow, ask: Ask, tmp_path: Path, wait_until: WaitUntil
) -> None:
    window = open_window()
    ask(window, "What is this?")
    window.porting.export(window.controller.current, "pdf", tmp_path / f"{'x' * 300}.pdf")
    wait_until(lambda: bool(window.findChildren(Notice)))
    assert "cannot be written" in window.findChildren(Notice)[0].message


@pytest.mark.parametrize("kind", list(SUFFIXES))
def test_a_full_disk_leaves_the_file_before(
    open_window: OpenWindow,
    ask: Ask,
    tmp_path: Path,
    wait_until: WaitUntil,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    window = open_window(BatchEngine(Script(text="An **answer**.")))
    ask(window, "What is this?")
    path = tmp_path / "chats" / f"chat{SUFFIXES[kind]}"
    path.parent.mkdir()
    path.write_bytes(b"before")
    monkeypatch.setattr(os, "fsync", full)
    window.porting.export(window.controller.current, kind, path)
    wait_until(lambda: bool(window.findChildren(Notice)))
    assert "No space left on device" in window.findChildren(Notice)[0].message
    assert path.read_bytes() == b"before"
    assert list(path.parent.iterdir()) == [path]
