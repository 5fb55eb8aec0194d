"""The tokens of a line as text at a cursor, each with its looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtGui import QTextCharFormat, QTextCursor

from app.ui.markdown import formats, formula
from app.ui.markdown.formats import Mark

if TYPE_CHECKING:
    from markdown_it.token import Token

LINE_SEPARATOR: Final = "\u2028"

_HIDES_BACKSLASH: Final = frozenset("*_`~#|<>.-+!$")  # other escapes keep it: a path, LaTeX


def write(cursor: QTextCursor, tokens: Sequence[Token], base: QTextCharFormat) -> None:
    looks = [base]
    for token in tokens:
        now = looks[-1]
        match token.type:
            case "text":
                cursor.insertText(token.content, now)
            case "text_special":
                if token.content in _HIDES_BACKSLASH:
                    cursor.insertText(token.content, formats.escaped(now))
                else:
                    cursor.insertText(token.markup, now)
            case "softbreak" | "hardbreak":
                cursor.insertText(LINE_SEPARATOR, now)
            case "code_inline":
                cursor.insertText(token.content, formats.inline_code(now))
            case "formula":
                if formula.shows(token.content):
                    look = formula.object_format(now, token.content)
                    cursor.insertText(formula.SIGN, look)
                else:
                    lines = token.content.replace("\n", LINE_SEPARATOR)
                    cursor.insertText(lines, formats.formula(now))
            case "footnote_ref":
                cursor.insertText(token.content, formats.footnote(now))
            case "image":  # never fetched: its words and its address are shown
                address = str(token.attrGet("src") or "")
                cursor.insertText(f"{token.content} ".lstrip(), now)
                cursor.insertText(address, formats.link(now, address))
            case "strong_open":
                looks.append(formats.emphasis(now, Mark.STRONG))
            case "em_open":
                looks.append(formats.emphasis(now, Mark.EMPHASIS))
            case "s_open":
                looks.append(formats.emphasis(now, Mark.STRIKE))
            case "link_open":
                looks.append(formats.link(now, str(token.attrGet("href") or "")))
            case "strong_close" | "em_close" | "s_close" | "link_close":
                looks.pop()
