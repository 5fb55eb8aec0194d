"""Text that comes in pieces ends as the same blocks as text that comes whole."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from markdown_it.token import Token

from app.ui.markdown.stream import LIMIT, MarkdownStream

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


class Recorder:
    """What a sink is told, with code and plain blocks as one text."""

    def __init__(self) -> None:
        self.closed: list[tuple[str, object]] = []
        self.tails = 0
        self._open = ("", "")
        self._text = ""

    def block(self, tokens: Sequence[Token], number: int) -> None:
        if tokens[0].type == "fence":
            self.closed.append((f"code {tokens[0].info}", tokens[0].content.removesuffix("\n")))
            return
        told = [(t.type, t.content, t.info) for t in tokens]
        if number and self.closed:  # items of one list, told in two parts
            before = self.closed.pop()[1]
            assert isinstance(before, list)
            told = before[:-1] + told[1:]
        self.closed.append(("block", told))

    def tail(self, tokens: Sequence[Token], number: int) -> None:
        self.tails += 1

    def open_code(self, language: str) -> None:
        self._open, self._text = ("code", language), ""

    def open_plain(self) -> None:
        self._open, self._text = ("plain", ""), ""

    def more(self, text: str) -> None:
        self._text += text

    def close(self) -> None:
        self.closed.append((" ".join(self._open), self._text))


def blocks(pieces: list[str]) -> list[tuple[str, object]]:
    sink = Recorder()
    stream = MarkdownStream(sink)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return sink.closed


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *places, len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


def test_any_split_gives_the_same_blocks() -> None:
    whole = blocks([TEXT])
    assert blocks(list(TEXT)) == whole
    chance = random.Random(1)
    for _ in range(100):
        places = sorted(chance.sample(range(1, len(TEXT)), chance.randint(1, 40)))
        assert blocks(cut(TEXT, places)) == whole


def test_code_is_told_as_it_is() -> None:
    code = dict(b for b in blocks(list(TEXT)) if b[0].startswith("code"))
    assert code == {"code py": "a = 1\n\n``\n  b", "code ": "never closed\n``"}
    texts = [b[1] for b in blocks([TEXT]) if b[0].startswith("code")]
    assert texts == ["a = 1\n\n``\n  b", "tilde\n", "indented\n more", "never closed\n``"]


@pytest.mark.parametrize(
    "text",
    ["a <smirk> b", "std::vector<std::string> a;", "&lt;x&gt;", "[a]: http://b.c", "\\(x\\)"],
)
def test_no_character_vanishes(text: str) -> None:
    told = blocks([text])[0][1]
    assert isinstance(told, list)
    assert told[1][1] == text


def test_a_block_beyond_the_limit_is_plain_until_it_ends() -> None:
    long = "x" * (LIMIT + 5)
    pieces = [long[i : i + 500] for i in range(0, len(long), 500)]
    assert blocks([*pieces, "\n\n*after*"])[0] == ("plain ", long)
    assert blocks([*pieces, "\n\n*after*"])[1][0] == "block"


def test_the_cost_of_a_piece_does_not_grow() -> None:
    """An open fence is never parsed again, whatever its length."""
    sink = Recorder()
    stream = MarkdownStream(sink)
    stream.feed("```\n")
    tails = sink.tails
    for _ in range(1000):
        stream.feed("line of code\n")
    assert sink.tails == tails
