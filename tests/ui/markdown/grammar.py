"""Documents of Markdown by chance, and ways to cut them; used by the split test."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

WORDS = (
    "word text a I *em* **strong** ~~gone~~ `code` `a|b` ``x`y`` [link](http://a.b/c_d) "
    "https://a.b/c_(d)_e. ![pic](file:///etc/passwd) <b>html</b> <br> &amp; \\* \\| \\$5\\(x\\) "
    "$a*b*c$ $5 $6 \\[y\\] [^1] *open **bad_ _u_ snake_case 👩‍👩‍👧‍👦 é 日本語 见https://a.b/路 "
    "العربية עברית \u202eoverride \u2067iso - + 1. # > | || --- === ``` ~~~ $$ [x] [ ] \\ \t "
    "a[^note] [^ab]+ 結果[^note]は so?[^note] un**believ**able (`a_b`),"
).split(" ")

word = st.sampled_from(WORDS)
line = st.lists(word, min_size=1, max_size=7).map(" ".join)
newline = st.sampled_from(["\n", "\n", "\n", "\n", "\r\n", "\r"])


@st.composite
def code(draw: st.DrawFn) -> list[str]:
    mark = draw(st.sampled_from(["```", "~~~", "````", "  ```"]))
    lines = draw(
        st.lists(st.one_of(line, st.sampled_from(["", "   ", "``", "# x", "- y"])), max_size=6)
    )
    end = draw(st.sampled_from([mark, mark, mark + "  ", "", "``"]))
    return [mark + draw(st.sampled_from(["", "python", " js x"])), *lines, end]


@st.composite
def table(draw: st.DrawFn) -> list[str]:
    columns = draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(line, min_size=1, max_size=6), max_size=5))
    marks = draw(
        st.lists(
            st.sampled_from(["---", ":--", "--:", ":-:", "-"]), min_size=columns, max_size=columns
        )
    )
    header = draw(st.lists(line, min_size=columns, max_size=columns))
    edge = draw(st.sampled_from(["|", "|", ""]))
    return [f"{edge} {' | '.join(row)} {edge}".strip() for row in (header, marks, *rows)]


plain = st.lists(line, min_size=1, max_size=4)
single = st.one_of(
    line.map(lambda text: [f"# {text}"]),
    line.map(lambda text: [f"### {text} ##"]),
    st.sampled_from([[t] for t in "--- *** ===  -  * 1. - > # > ```x | [^1]: --".split(" ")]),
    line.map(lambda text: [text, "---"]),
    line.map(lambda text: [f"[^2]: {text}"]),
    line.map(lambda text: [f"[^a-note]: {text}"]),
    line.map(lambda text: ["    " + text, "", "    more"]),
    line.map(lambda text: ["$$", text, "$$"]),
    line.map(lambda text: [f"\\[ {text} \\]"]),
    line.map(lambda text: ["$$ " + text]),
    st.sampled_from([[""], ["  "], ["", ""]]),
)
leaf = st.one_of(plain, single, code(), table())


def _indent(lines: list[str], first: str, rest: str, lazy: bool) -> list[str]:
    return [
        (first if i == 0 else "" if lazy and i % 2 else rest) + text for i, text in enumerate(lines)
    ]


def _container(inner: Any) -> Any:
    marks = st.sampled_from(
        ["- ", "* ", "1. ", "2) ", "-   ", "> ", ">", "-\t", "- [x] ", "10. ", "123. "]
    )

    def wrap(parts: list[list[str]], mark: str, blank: bool, lazy: bool) -> list[str]:
        result: list[str] = []
        for part in parts:
            rest = mark if mark[0] == ">" else " " * len(mark.expandtabs(4))
            result += _indent(part, mark, rest, lazy) + [""] * blank
        return result

    return st.builds(
        wrap, st.lists(inner, min_size=1, max_size=3), marks, st.booleans(), st.booleans()
    )


block = st.recursive(leaf, _container, max_leaves=4)


@st.composite
def documents(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.tuples(block, st.booleans()), min_size=1, max_size=5))
    lines = [text for part, blank in parts for text in [*part, *[""] * blank]]
    end = draw(newline)
    return end.join(lines) + draw(st.sampled_from(["", end]))


def cuts(text: str) -> st.SearchStrategy[list[int]]:
    if len(text) < 2:
        return st.just([])
    return st.lists(st.integers(1, len(text) - 1), max_size=20, unique=True).map(sorted)
