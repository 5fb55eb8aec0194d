"""A chat for other programs, and ours back: Markdown, a page to print, JSON."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any, Final

from app.conversation import Conversation, Role, Turn
from app.errors import HistoryError, OutputError, valid_text
from app.files import replace_bytes
from app.history.records import ChatRecord, Codec, TurnRecord

FORMAT: Final = "slipstream-chat"
VERSION: Final = 1

MOST_BYTES: Final = 256 << 20
"""Of a file that is taken in."""

_NAMES: Final = {Role.USER: "You", Role.ASSISTANT: "Slipstream", Role.SYSTEM: "System"}

_REMEDY: Final = "Choose a file that was exported as JSON."

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.55 Inter, "Noto Sans", system-ui, sans-serif; max-width: 720px;
  margin: 0; margin-inline: auto; padding: 40px 24px; }
h1 { font-size: 22px; } h2 { font-size: 19px; } h3 { font-size: 17px; }
.who { font-size: 13px; font-weight: bold; margin: 32px 0 4px; }
.when { color: GrayText; font-size: 13px; }
.you { background: color-mix(in srgb, CanvasText 6%, Canvas); border-radius: 10px;
  padding: 8px 16px; white-space: pre-wrap; overflow-wrap: anywhere; }
pre, code { font: 13.5px/1.5 "JetBrains Mono", monospace; }
pre { background: color-mix(in srgb, CanvasText 5%, Canvas); border-radius: 10px;
  padding: 12px 16px; white-space: pre-wrap; overflow-wrap: anywhere; }
table { border-collapse: collapse; } th, td { border: 1px solid GrayText; padding: 4px 8px; }
blockquote { border-left: 3px solid GrayText; margin-left: 0; padding-left: 16px; }
details { color: GrayText; } details div { white-space: pre-wrap; }
@media print { body { padding: 0; max-width: none; } .who, h2, h3 { break-after: avoid; } }
"""


def as_markdown(chat: Conversation) -> str:
    """The path that is shown, as it was written."""
    parts = [f"# {valid_text(chat.title)}\n"]
    for turn in chat.path():
        parts.append(f"## {_NAMES[turn.role]}\n")
        if turn.reasoning:
            parts.append(_quoted(turn.reasoning))
        parts.append(f"{valid_text(turn.text).rstrip()}\n")
    return "\n".join(parts)


def as_html(chat: Conversation) -> str:
    """The same as one page that holds all it needs. Nothing in a text is markup of its own."""
    title = escape(valid_text(chat.title))
    when = datetime.fromtimestamp(chat.used).strftime("%Y-%m-%d %H:%M")
    body = "\n".join(_html_turn(turn) for turn in chat.path())
    return (
        f'<!DOCTYPE html>\n<html lang="und"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{title}</h1>"
        f'<p class="when">{when}</p>\n{body}\n</body></html>\n'
    )


def as_json(chat: Conversation, codec: Codec) -> str:
    """Everything, all branches too; `read` gives it back."""
    table = {
        "format": FORMAT,
        "version": VERSION,
        "chat": asdict(ChatRecord.of(chat)),
        "turns": [asdict(TurnRecord.of(turn, codec)) for turn in chat.turns.values()],
    }
    return json.dumps(table, indent=1)  # half a surrogate pair is escaped, and comes back


def write(path: Path, content: str | bytes) -> None:
    """Raises `OutputError`; the file is as it was then."""
    try:
        replace_bytes(path, content.encode() if isinstance(content, str) else content)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(
            f"The chat cannot be written to `{path}`: {reason}.",
            remedy="Check the folder's permissions and the free disk space.",
        ) from error


def read(path: Path, codec: Codec) -> Conversation:
    """A chat that was exported as JSON, with ids of its own. Raises `HistoryError`."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise HistoryError(f"`{path.name}` is too large for a chat.", remedy=_REMEDY)
        table = json.loads(path.read_bytes())
    except OSError as error:
        raise HistoryError(
            f"`{path}` cannot be read: {error.strerror or error}.", remedy=_REMEDY
        ) from error
    except (ValueError, RecursionError) as error:
        raise HistoryError(f"`{path.name}` is no JSON.", remedy=_REMEDY) from error
    return of_table(table, path.name, codec)


def of_table(table: Any, name: str, codec: Codec) -> Conversation:
    if not isinstance(table, dict) or table.get("format") != FORMAT:
        raise HistoryError(f"`{name}` is no chat of Slipstream.", remedy=_REMEDY)
    version = table.get("version")
    if isinstance(version, int) and version > VERSION:
        raise HistoryError(
            f"`{name}` was written by a newer Slipstream.", remedy="Import it with that one."
        )
    about, rows = table.get("chat"), table.get("turns")
    if version != VERSION or not isinstance(about, dict) or not isinstance(rows, list):
        raise HistoryError(f"`{name}` is no whole chat.", remedy=_REMEDY)
    turns = sorted(_turns(rows, codec), key=lambda t: t.place)
    ids = {turn.id: uuid.uuid4().hex for turn in turns}
    for place, turn in enumerate(turns):
        turn.place = place
        turn.id = ids[turn.id]
        turn.parent = ids.get(turn.parent or "", turn.parent)
    chat = Conversation(name=_text(about.get("name")), pinned=about.get("pinned") is True)
    chat.adopt(turns)
    if (leaf := ids.get(_text(about.get("leaf")))) in chat.turns:
        chat.leaf = leaf
    chat.options, chat.start = _text(about.get("options")), ids.get(_text(about.get("start")))
    if not chat.turns:
        raise HistoryError(f"`{name}` holds no messages.", remedy=_REMEDY)
    return chat


def _turns(rows: list[Any], codec: Codec) -> Iterator[Turn]:
    """Of several with one id the first: with both, one would hang under itself."""
    known: set[str] = set()
    for row in rows:
        try:
            turn = TurnRecord(**row).turn(codec)
        except (TypeError, ValueError):
            continue  # a bad row costs one row here too
        if turn.id not in known:
            known.add(turn.id)
            yield turn


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _quoted(text: str) -> str:
    lines = valid_text(text).strip().splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines) + "\n"


def _html_turn(turn: Turn) -> str:
    head = f'<p class="who" role="heading" aria-level="2">{_NAMES[turn.role]}</p>'
    text = valid_text(turn.text)
    if turn.role is not Role.ASSISTANT:
        return f'{head}<div class="you">{escape(text)}</div>'
    thought = ""
    if turn.reasoning:
        thought = (
            "<details><summary>Thinking</summary>"
            f"<div>{escape(valid_text(turn.reasoning))}</div></details>"
        )
    from markdown_it import MarkdownIt  # the window opens before it is needed

    # Raw HTML stays text, and no address is fetched: an image is told by its name.
    reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    reader.disable("image")
    return f"{head}{thought}{reader.render(text)}"
