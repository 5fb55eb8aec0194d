"""Where a checkpoint keeps its chat template."""

from __future__ import annotations

from pathlib import Path

from app.convert.json_file import JsonFile
from app.errors import CheckpointError


def chat_template(folder: Path, settings: JsonFile) -> str | list[dict[str, str]] | None:
    """The template in `tokenizer_config.json` (`settings`), else `chat_template.jinja`.

    A list holds several, each with `name` and `template`. The order is that of llama.cpp's
    converter, which however drops the second file where the first does not exist.
    """
    value = settings.values.get("chat_template")
    if value is None:
        path = folder / "chat_template.jinja"
        try:
            return path.read_text("utf-8") if path.is_file() else None
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"`{path}` cannot be read: {error}.", remedy="Download the model again."
            ) from error
    if isinstance(value, list) and all(_is_named(item) for item in value):
        return [{key: item[key] for key in ("name", "template")} for item in value]
    if not isinstance(value, str):
        raise settings.wrong("chat_template", "a text or a list of named texts")
    return value


def _is_named(item: object) -> bool:
    return isinstance(item, dict) and all(
        isinstance(item.get(key), str) for key in ("name", "template")
    )
