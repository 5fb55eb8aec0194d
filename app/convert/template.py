"""Where a checkpoint keeps its chat template."""

from __future__ import annotations

from pathlib import Path

from app.convert.json_file import JsonFile
from app.errors import CheckpointError, is_text


def chat_template(folder: Path, settings: JsonFile) -> str | list[dict[str, str]] | None:
    """The template that transformers takes, of those that the folder has.

    First `chat_template.jinja`, then `chat_template.json` (of processors), then the one in
    `tokenizer_config.json` (`settings`), where tools of before left it behind. A list holds
    several, each with `name` and `template`.
    """
    path = folder / "chat_template.jinja"
    if path.is_file():
        try:
            return path.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"`{path}` cannot be read: {error}.",
                remedy="Download this file again; a template is text in UTF-8.",
            ) from error
    for source in (JsonFile.read_if_there(folder / "chat_template.json"), settings):
        value = source.values.get("chat_template")
        if isinstance(value, list) and value and all(_is_named(item) for item in value):
            return [{key: item[key] for key in ("name", "template")} for item in value]
        if is_text(value):
            return str(value)
        if value is not None:
            raise source.wrong("chat_template", "a text or a list of named texts")
    return None


def _is_named(item: object) -> bool:
    return isinstance(item, dict) and all(is_text(item.get(key)) for key in ("name", "template"))
