"""What is shown while text comes, and what a piece costs."""

from __future__ import annotations

import pytest

from app.ui.markdown.blocks import SEGMENT
from app.ui.markdown.stream import MarkdownStream
from tests.ui.markdown.test_splits import Tree, told

TEXT = """# Title

A paragraph of *two*
lines with `code`.

1. one
2. two

   and more of two
3. three
- a
  - nested
- b

> quote
lazy
---

```py
a = 1

``
  b
```
after
~~~
tilde

~~~

| a | b |
|---|---|
| 1 | 2 |

  ```
  indented
   more
  ```
```
never closed
``"""


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ("| `string | null` | either |", ("`string | null`", "either")),
        ("| $|x|$ | norm |", ("$|x|$", "norm")),
        (r"| \(|x|\) and ``a|`b`` | `\|` |", (r"\(|x|\) and ``a|`b``", "`|`")),
        ("| a | b | c | d |", ("a", "b | c | d")),
        ("| `a | b` | c | d |", ("`a", "b` | c | d")),
        ("| $5 | $6 |", ("$5", "$6")),
        ("|$a|$b|", ("$a", "$b")),
        ("| one |", ("one", "")),
        ("| a | b | |", ("a", "b")),
    ],
)
def test_nothing_of_a_row_is_lost(row: str, cells: tuple[str, ...]) -> None:
    for pieces in ([f"| a | b |\n|---|---|\n{row}\n"], list(f"| a | b |\n|---|---|\n{row}\n")):
        assert told(pieces)[-1] == cells


def test_a_pipe_in_code_is_no_column_of_a_head() -> None:
    assert told(["| `a|b` | c |\n|---|---|\n"]) == [("table", ["", ""]), ("`a|b`", "c")]


def test_code_is_told_as_it_is() -> None:
    code = [t for t in told([TEXT]) if t[0] == "code"]
    assert code == [
        ("code", "py", "a = 1\n\n``\n  b"),
        ("code", "", "tilde\n"),
        ("code", "", "indented\n more"),
        ("code", "", "never closed\n``"),
    ]


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("text\n", "-"),  # a list, or the line under a heading
        ("text\n", "- "),
        ("", "#"),
        ("", "1."),
        ("", "``"),
        ("text\n", "|--"),
        ("", "| a | b"),  # the head of a table is shown with its columns
        ("", "| a | b |\n"),
    ],
)
def test_what_is_undecided_waits(before: str, line: str) -> None:
    tree = streamed(before)
    shown = list(tree.told)
    assert streamed(before + line).told == shown


def test_an_unfinished_line_is_shown() -> None:
    assert streamed("some te").told == [("p", "some te")]
    assert streamed("- some te").told == [("item", None, "-"), ("p", "some te")]
    assert streamed("| a |\n|---|\n| ce").told[-1] == ("ce",)


def test_a_carriage_return_and_its_newline_may_come_apart() -> None:
    assert told(["a\r", "\nb\r", "c"]) == told(["a\nb\nc"])


def test_a_long_paragraph_is_cut_between_words_and_outside_of_spans() -> None:
    words = "word " * (SEGMENT // 5 - 2)
    parts = streamed(f"{words}`a b c d e f g h` {words}").parts
    assert "`" not in parts[0]
    assert parts[0].endswith(" ")


class Counting(Tree):
    """Keeps the parts in which text was told, and counts the lines of code."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.lines = 0

    def text(self, kind: str, source: str, *, after: str | None) -> None:
        super().text(kind, source, after=after)
        self.parts.append(source)

    def code_line(self, text: str) -> None:
        super().code_line(text)
        self.lines += 1


def streamed(text: str, size: int = 0) -> Counting:
    tree = Counting()
    stream = MarkdownStream(tree)
    size = size or len(text) or 1
    for i in range(0, len(text), size):
        stream.feed(text[i : i + size])
    return tree


@pytest.mark.parametrize("before", ["", "- item:\n  ", "> "])
def test_no_line_of_code_is_told_twice(before: str) -> None:
    inner = {"": "", "- item:\n  ": "  ", "> ": "> "}[before]
    text = f"{before}```\n" + f"{inner}line of code\n" * 1_000
    assert streamed(text, size=len(f"{inner}line of code\n")).lines <= 2_000
