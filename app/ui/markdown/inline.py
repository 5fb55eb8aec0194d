"""What stands in a line: markdown-it's tokens, and the rules that are ours.

Off are the rules that let characters vanish or change: `<autolinks>` (of which
`<std::string>` is one), HTML, entities. Ours: bare addresses, formulas (which no other
rule may look into), references to footnotes, `<br>` in the cells of a table, and emphasis beside
scripts without spaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # the window opens before there is anything to parse
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

    _Rule = Callable[[StateInline, bool], bool]

UNSPACED: Final = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\uffff\U00020000-\U0003ffff"
"""Signs of scripts that are written without spaces between words."""

_ADDRESS: Final = re.compile(r"://(?:[A-Za-z0-9\-._~:/?#\[\]@!$&()*+,;=%]|[^\W" + UNSPACED + "])+")
_OF_UNSPACED: Final = re.compile(f"[{UNSPACED}]")
_SCHEME: Final = re.compile(r"(?<![A-Za-z0-9])https?\Z", re.IGNORECASE)
LABEL: Final = r"\d{1,4}|[^\W\d][\w-]{0,39}"
"""What a footnote is called: a number, or a name."""

_NOTE: Final = re.compile(rf"\[\^({LABEL})\](?!\()")
_ENDING: Final = re.compile(r"[\w.,;)\]*~`%]\Z|[^\W_][)\]*_~`]*[!?:]+\Z")
"""What there can be a note to ends so, as far as it is ASCII: not `(?:` or `(?!`."""

_OPENING: Final = ("Ps", "Pi", "Sm")
"""Categories of signs that end nothing: brackets and quotes that open, signs of mathematics."""

_SIGHT: Final = 16  # signs before a note that are looked at

_BREAK: Final = re.compile(r"<br\s*/?>", re.IGNORECASE)
_FORMULAS: Final = {"$$": "$$", "$": "$", "\\(": "\\)", "\\[": "\\]"}


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import emphasis, strikethrough

    result = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")
    # Without `text_join` an escaped character keeps its backslash beside it.
    result.disable(["autolink", "html_inline", "entity", "text_join"])
    rules = result.inline.ruler
    rules.before("escape", "formula", _formula)
    rules.before("escape", "bare_address", _bare_address)
    rules.before("link", "footnote_ref", _footnote)
    rules.before("link", "cell_break", _cell_break)
    rules.at("emphasis", _unspaced(emphasis.tokenize))
    rules.at("strikethrough", _unspaced(strikethrough.tokenize))
    return result


def prepare() -> None:
    """Import what texts are read with: it takes up to 60 ms, while an answer is waited for."""
    import markdown_it.rules_block.table  # noqa: F401

    _parser()


def prepared() -> bool:
    return _parser.cache_info().currsize > 0


def parse(
    source: str, *, cell: bool = False, names: Container[str] | None = None
) -> Sequence[Token]:
    """The tokens of the text of one block. `names` are those of footnotes that there are, None
    where that is not known: then what looks like a name is one."""
    return _parser().parseInline(source, {"cell": cell, "names": names})[0].children or []


def closing(address: str) -> int:
    """How much of a bare address belongs to it: not the punctuation of the sentence."""
    end = len(address)
    while end:
        last = address[end - 1]
        opening = {")": "(", "]": "["}.get(last)
        if opening and address.count(last, 0, end) <= address.count(opening, 0, end):
            break
        if last in "*_~":
            run = end - len(address[:end].rstrip(last))
            if address.count(last, 0, end - run) >= run:
                break  # the address has both sides of it
            end -= run
            continue
        if opening is None and last not in ".,;:!?'":
            break
        end -= 1
    return end


def _unspaced(rule: _Rule) -> _Rule:
    """`rule`, which reads the signs of emphasis, for scripts without spaces too.

    By CommonMark `**` opens nothing between a letter and a bracket, and closes nothing between a
    full stop and a letter: there a space would tell which of the two it does. Where none is
    written, as in `**注意：**これ`, it does what it can.
    """

    def read(state: StateInline, silent: bool) -> bool:
        start, known = state.pos, len(state.delimiters)
        if not rule(state, silent):
            return False
        before = state.src[start - 1 : start] or " "
        after = state.src[state.pos : state.pos + 1] or " "
        # A single star is a star more often than not: `姓名*：张三，电话*：123`.
        strong = state.pos - start > 1 and state.src[start] != "_"
        if strong and _OF_UNSPACED.search(before + after):
            for sign in state.delimiters[known:]:
                sign.open, sign.close = not after.isspace(), not before.isspace()
        return True

    return read


def _bare_address(state: StateInline, silent: bool) -> bool:
    if state.linkLevel or not state.src.startswith("://", state.pos):
        return False
    scheme = _SCHEME.search(state.pending)
    found = _ADDRESS.match(state.src, state.pos)
    if not scheme or not found:
        return False
    end = closing(found[0])
    if end <= len("://"):
        return False
    address = scheme[0] + found[0][:end]
    if not silent:
        state.pending = state.pending[: scheme.start()]
        state.push("link_open", "a", 1).attrSet("href", address)
        state.push("text", "", 0).content = address
        state.push("link_close", "a", -1)
    state.pos += end
    return True


def _formula(state: StateInline, silent: bool) -> bool:
    """`$x$`, `$$x$$`, `\\(x\\)` or `\\[x\\]`. Money is none: `$5 and $6`, `US$5-$6`."""
    src, start = state.src, state.pos
    sign = src[start : start + 2]
    if sign not in _FORMULAS:
        sign = sign[:1]
    if sign not in _FORMULAS:
        return False
    begin = start + len(sign)
    end = _end(src, begin, state.posMax, _FORMULAS[sign])
    inside = src[begin:end]
    if end < 0 or not inside.strip():
        return False
    after = end + len(sign)
    if sign == "$" and (
        inside[0].isspace()
        or inside[-1].isspace()
        or src[after : after + 1].isdigit()
        or (start and src[start - 1].isalnum())
        or "`" in inside
    ):
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content, token.markup = src[start:after], sign
    state.pos = after
    return True


def _end(src: str, begin: int, end: int, sign: str) -> int:
    """Where the next unescaped `sign` is, or -1."""
    at = begin
    while (at := src.find(sign, at, end)) >= 0:
        slashes = len(src[begin:at]) - len(src[begin:at].rstrip("\\"))
        if slashes % 2 == 0:
            return at
        at += 1
    return -1


def _footnote(state: StateInline, silent: bool) -> bool:
    note = _NOTE.match(state.src, state.pos, state.posMax)
    if not note or not (note[1].isdigit() or _refers(state.src, *note.span())):
        return False
    names = state.env.get("names")
    if names is not None and note[1] not in names and not note[1].isdigit():
        return False
    if not silent:
        token = state.push("footnote_ref", "", 0)
        token.content, token.markup = note[1], note[0]
    state.pos = note.end()
    return True


def _refers(text: str, start: int, end: int) -> bool:
    """Whether `[^name]` stands behind what it is a note to. Elsewhere it is a set of signs, as in
    `[^aeiou]+`: whether the note itself comes is not known as long as text does."""
    after = text[end : end + 1]
    if after in tuple("+*?{") or (after.isalnum() and not _OF_UNSPACED.match(after)):
        return False
    before = text[start - 1 : start] if start else " "
    if before.isascii():
        return bool(_ENDING.search(text, max(0, start - _SIGHT), start))
    opens = unicodedata.category(before) in _OPENING or before in "¿¡"
    return not opens and not before.isspace()


def _cell_break(state: StateInline, silent: bool) -> bool:
    found = state.env.get("cell") and _BREAK.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    if not silent:
        state.push("hardbreak", "br", 0).markup = found[0]
    state.pos = found.end()
    return True
