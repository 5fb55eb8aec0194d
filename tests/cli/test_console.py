"""What goes where, on a terminal and off it."""

from __future__ import annotations

import io
import json

import pytest

from app.cli.console import Console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_json_is_one_ascii_line(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(as_json=True)
    console.stream("not this")
    console.note("for people")
    console.result({"text": "a\n你好 \udcff"}, "nor this")
    out, err = capsys.readouterr()
    assert out.isascii()
    assert json.loads(out) == {"text": "a\n你好 \udcff"}
    assert (out.count("\n"), err) == (1, "for people\n")


def test_no_number_that_is_no_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="JSON"):
        Console(as_json=True).result({"speedup": float("nan")}, "")
    assert capsys.readouterr().out == ""


def test_any_character_on_any_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True)
    monkeypatch.setattr("sys.stdout", narrow)
    Console(as_json=False).stream("a😊b")
    assert narrow.buffer.getvalue() == b"a?b"


def test_progress_on_a_terminal_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    console = Console(as_json=False)
    console.progress("Loading", 0.25)
    console.stream("Hello")
    console.note("done")
    assert terminal.getvalue() == "\rLoading:  25%\r\x1b[Kdone\n"


def test_what_stands_beside_a_result_is_dimmed_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Console(as_json=False).aside("a thought")
    assert capsys.readouterr() == ("", "a thought")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    Console(as_json=False).aside("a thought")
    assert terminal.getvalue() == "\x1b[2ma thought\x1b[0m"


def test_quick_work_leaves_no_lines_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(as_json=False)
    for done in range(100):
        console.progress("Loading", done / 100)
    console.result({}, "ok")
    assert capsys.readouterr() == ("ok\n", "")
