"""Any split of any document renders as the whole, and as CommonMark says it does."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from typing import Any

import pytest
import shiboken6
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from PySide6.QtGui import QTextDocument
from pytestqt.qtbot import QtBot

from app.ui.look.theme import Theme
from app.ui.markdown import blocks
from app.ui.markdown.blocks import SEGMENT
from app.ui.markdown.copying import plain_text
from app.ui.markdown.document import DocumentWriter
from app.ui.markdown.markdown_view import MarkdownView
from app.ui.markdown.stream import HEAD, MarkdownStream
from app.ui.markdown.visible import visible
from tests.ui.markdown import grammar

DOCUMENTS = int(os.environ.get("SLIPSTREAM_DOCUMENTS", "500"))
"""How many documents are tried; `dev.py splits` tries 20,000."""

long = pytest.mark.timeout(600 + DOCUMENTS)
many = settings(
    max_examples=DOCUMENTS,
    derandomize=DOCUMENTS <= 500,  # by chance where somebody looks for more: `dev.py splits`
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class Pages:
    """Two pages that are used again and again: Qt's are dear to make."""

    def __init__(self) -> None:
        self.one, self.other = (DocumentWriter(QTextDocument()) for _ in range(2))


@pytest.fixture(scope="module")
def pages(look: Theme) -> Pages:
    return Pages()


def shown(writer: DocumentWriter, pieces: list[str]) -> tuple[object, ...]:
    """All that a reader of the page can see."""
    writer.clear()
    stream = MarkdownStream(writer)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    document = writer.document
    return (
        document.toHtml(),
        plain_text(document, 0, document.characterCount()),
        *writer.decorations,
    )


def cut(text: str, places: list[int]) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *places, len(text)])]


@long
@many
@given(st.data())
def test_every_split_renders_as_the_whole(pages: Pages, data: st.DataObject) -> None:
    text = data.draw(grammar.documents())
    whole = shown(pages.one, [text])
    assert shown(pages.other, cut(text, data.draw(grammar.cuts(text)))) == whole
    assert told(list(text)) == told([text])


NOTES = ("", "\n\n[^note]: It.\n", "\n\n[^a-note]: It.\n\n[^ab]: x", " b?[^x] and[^note]")


@long
@settings(many, max_examples=DOCUMENTS // 5)
@given(st.data())
def test_a_view_shows_notes_by_their_names_however_they_came(
    qtbot: QtBot, look: Theme, data: st.DataObject
) -> None:
    text = data.draw(grammar.documents()) + data.draw(st.sampled_from(NOTES))
    came: list[str] = []
    streamed, whole = (
        MarkdownView("An answer", source) for source in (lambda: "".join(came), lambda: text)
    )
    for piece in cut(text, data.draw(grammar.cuts(text))):
        came.append(piece)
        streamed.add(piece)
    whole.add(text)
    for view in (streamed, whole):
        view.finish()
    qtbot.waitUntil(lambda: streamed.rendered and whole.rendered, timeout=60_000)
    pages = [view.document().toHtml() for view in (streamed, whole)]
    for view in (streamed, whole):
        shiboken6.delete(view)
    assert pages[0] == pages[1]


@long
@settings(many, max_examples=DOCUMENTS // 5)
@given(grammar.documents().map(lambda text: text.replace("$", "S").replace("[", "(")))
def test_blocks_are_those_of_commonmark(text: str) -> None:
    # markdown-it takes an item or a quote for the head of a table.
    lines = visible(text.replace("\r\n", "\n"))
    assume(not re.search(r"^.*(?:>|(?:[-*+]|\d[.)])[ \t]).*\|.*\n[ \t>]*[|:-]", lines, re.M))
    # Nor does it mind four spaces before a quote's sign in a quote, which make it text.
    assume(not re.search(r"^[ \t>]*(?: {4}|\t)[ \t]*>", lines, re.M))
    # And it ends a list whose item is empty after two blank lines, and forgets a last line of
    # blanks that has no newline (the reference implementation does neither).
    assume(not re.search(r"\n[ \t>]+\Z", lines))
    assume(not re.search(r"(?:[-*+]|\d[.)])[ \t]*\n[ \t>]*\n[ \t>]*\n", lines))
    # And it takes what is indented after a lazy line of a quote in a quote for code.
    assume(not re.search(r"^[ \t]*>.*\n(?![ \t]*>).*\S.*\n[ \t]*>[> \t]*(?: {4}|\t)", lines, re.M))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_cells", cells_of_github)
        patch.setattr(blocks, "_WHOLE", re.compile("(?!)"))
        assert told([text]) == expected(text)


def cells_of_github(row: str, columns: int) -> list[str]:
    """There what is too much is left out."""
    cells = blocks._parted(row)[:columns]
    return cells + [""] * (columns - len(cells))


@pytest.mark.parametrize(
    "text",
    [
        "word " * 3_000 + "\n\nend",
        "x" * (HEAD * 3 + 7) + "\n- a\n" + "y" * (HEAD + 1),
        "line of *text* here\n" * 400 + "---\n",
        "- " + "a line of an item\n  " * 500 + "\n- b",
        "```\n" + "z" * 9_000 + "\n```\nafter",
        "> " + "quoted text\nlazy\n" * 400 + "\nend",
        "| a | b |\n|---|--:|\n" + "| cell | " * 1 + "c" * 3_000 + " |\n| 1 | 2 |\n",
        "|" + " head |" * 300 + "\n|" + "---|" * 300 + "\n" + ("|" + " x |" * 300 + "\n") * 4,
        "| a | b |\n|---|---|\n" + "| one | two |\n" * 200,
        " " * 5_000 + "text",
        "$$\n" + "a + b\n" * 900 + "$$\nend",
        "*" + "a" * (SEGMENT - 2) + "* b `" + "c" * SEGMENT + "` d",
        "- item\n\n  ```py\n" + "  x = 1\n\n" * 1_500 + "  ```\n\nafter *it*\n",  # blanks in code
        "".join("  " * i + f"- level {i}\n" for i in range(14)) + "\nafter\n",
        "text\n\n\n\n```\ncode\n```\n\n\n" * 300,  # blanks before a fence
        "> - $x^2$ and \\[\n  " + "y + " * 300 + "z\n  \\]\n" + "- $a$ " * 700,
    ],
)
def test_long_texts_too(pages: Pages, text: str) -> None:
    whole = shown(pages.one, [text])
    for size in (97, 2_048):
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        assert shown(pages.other, pieces) == whole


# --- CommonMark's own blocks, as markdown-it finds them -----------------------------------


class Tree:
    """What `Blocks` tells, in the words of `expected`."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self._code = self._language = ""
        self._kept: tuple[list[Any], str, str] = ([], "", "")

    def quote(self) -> None:
        self.told.append("quote")

    def item(self, number: int | None, mark: str, *, loose: bool) -> None:
        self.told.append(("item", number, mark))

    def leave(self) -> None:
        self.told.append("leave")

    def text(self, kind: str, source: str, *, after: str | None) -> None:
        if after is None:
            self.told.append((kind, source))
        else:
            self.told[-1] = (kind, self.told[-1][1] + after + source)

    def rule(self) -> None:
        self.told.append("rule")

    def code(self, language: str) -> None:
        self._code, self._language = "", language

    def code_line(self, text: str) -> None:
        self._code += text + "\n"

    def code_more(self, text: str) -> None:
        self._code = self._code[:-1] + text + "\n"

    def end_code(self) -> None:
        self.told.append(("code", self._language, self._code.removesuffix("\n")))

    def formula(self, source: str) -> None:
        self.told.append(("formula", source))

    def table(self, header: list[str], align: list[str]) -> None:
        self.told += [("table", align), tuple(header)]

    def row(self, cells: list[str]) -> None:
        self.told.append(tuple(cells))

    def end_table(self) -> None: ...

    # A `stream.Sheet` too.
    def begin(self) -> None:
        self.told, self._code, self._language = list(self._kept[0]), *self._kept[1:]

    def tail(self) -> None:
        self._kept = (list(self.told), self._code, self._language)

    def end(self) -> None: ...


def told(pieces: list[str]) -> list[Any]:
    tree = Tree()
    stream = MarkdownStream(tree)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return [(t[0], stripped(t[1])) if is_text(t) else t for t in tree.told]


def is_text(told: Any) -> bool:
    return isinstance(told, tuple) and len(told) == 2 and told[0][:1] in ("p", "h")


def stripped(source: str) -> str:
    return "\n".join(line.strip() for line in source.split("\n"))


def expected(text: str) -> list[Any]:
    md = (
        MarkdownIt("commonmark", {"html": False})
        .enable("table")
        .disable(["reference", "html_block"])
    )
    result: list[Any] = []
    lists: list[Any] = []
    row: list[str] | None = None
    kind = ""
    for token in md.parse(visible(text.replace("\r\n", "\n"))):
        match token.type:
            case "blockquote_open":
                result.append("quote")
            case "bullet_list_open":
                lists.append(None)
            case "ordered_list_open":
                lists.append(int(token.attrGet("start") if "start" in token.attrs else 1))
            case "bullet_list_close" | "ordered_list_close":
                lists.pop()
            case "list_item_open":
                result.append(("item", lists[-1], token.markup))
                lists[-1] = lists[-1] if lists[-1] is None else lists[-1] + 1
            case "blockquote_close" | "list_item_close":
                result.append("leave")
            case "heading_open" | "paragraph_open":
                kind = token.tag
            case "table_open":
                result.append(("table", []))
                table = result[-1]
            case "th_open":
                table[1].append(str(token.attrGet("style") or "").removeprefix("text-align:"))
            case "tr_open":
                row = []
            case "tr_close":
                result.append(tuple(row or ()))
                row = None
            case "inline" if row is not None:
                row.append(token.content)
            case "inline":
                result.append((kind, stripped(token.content)))
            case "fence":
                result.append(("code", token.info.strip(), token.content.removesuffix("\n")))
            case "code_block":
                result.append(("code", "", token.content.removesuffix("\n")))
            case "hr":
                result.append("rule")
    return result
