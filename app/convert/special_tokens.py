"""Tokens beside the vocabulary proper: which there are, of what kind, and which has a role."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gguf import GGUFWriter
from gguf.constants import TokenType

from app.convert.json_file import JsonFile
from app.errors import CheckpointError

# A role's key in GGUF. The order and the words are those of Hugging Face.
_ROLES: Final = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "unk": "unknown_token_id",
    "sep": "seperator_token_id",
    "pad": "padding_token_id",
    "mask": "mask_token_id",
}
_DEFAULT: Final = "<|endoftext|>"  # takes these roles in Qwen3.5 unless told otherwise
_END_OF_TURN: Final = "<|im_end|>"
_DEFAULT_ROLES: Final = ("eos_token", "pad_token", "unk_token")


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    added: dict[int, tuple[str, TokenType]]
    roles: dict[str, int]
    add: dict[str, bool]  # whether the runtime itself puts `bos`, `eos` around a text

    @classmethod
    def read(
        cls,
        data: dict[str, Any],
        settings: JsonFile,
        config: JsonFile,
        generation: Path,
        vocab: dict[str, int],
        path: Path,
    ) -> SpecialTokens:
        """From `tokenizer.json` (`data` at `path`), `tokenizer_config.json`, `config.json`,
        and, if these name no end, `generation_config.json` (the path `generation`)."""
        entries = _added_tokens(data, settings, vocab, path)
        ids = vocab | {entry["content"]: token for token, entry in entries.items()}
        for text in _named(settings):
            if text in ids:
                entries.setdefault(ids[text], {"content": text})["special"] = True
            elif text != _DEFAULT:
                raise CheckpointError(
                    f"`{settings.path}` names the token `{text}`, which `{path}` does not have.",
                    remedy="Download the model again.",
                )
        added = {token: _text_and_type(entry) for token, entry in entries.items()}
        roles = _roles(data, settings, config, ids)
        if "eos" not in roles:
            roles["eos"] = _end(config, JsonFile.read_if_there(generation), ids, path)
        return cls(added, roles, _additions(data, settings))

    def describe(self, header: GGUFWriter, *, mask_token: int | None) -> None:
        roles = self.roles if mask_token is None else {**self.roles, "mask": mask_token}
        for role, token in roles.items():
            header.add_uint32(f"tokenizer.ggml.{_ROLES[role]}", token)
        for role, value in self.add.items():
            header.add_bool(f"tokenizer.ggml.add_{role}_token", value)


def _added_tokens(
    data: dict[str, Any], settings: JsonFile, vocab: dict[str, int], path: Path
) -> dict[int, dict[str, Any]]:
    """The entries by id, refused unless the tokenizer library would give them these ids."""
    entries: dict[int, dict[str, Any]] = {}
    following = len(vocab)
    added = data.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(entry, dict) for entry in added):
        raise JsonFile(path, data).wrong("added_tokens", "a list of objects")
    for entry in added:
        text, token = entry.get("content"), entry.get("id")
        expected = vocab.get(text, following) if isinstance(text, str) else following
        if not isinstance(text, str) or type(token) is not int or token != expected:
            raise CheckpointError(
                f"`{path}` gives the added token {text!r} the id {token!r}, not {expected}.",
                remedy="Download the model again.",
            )
        entries[token] = dict(entry)
        following = max(following, token + 1)
    for key, override in settings.section("added_tokens_decoder").items():
        token = int(key) if key.isdecimal() else -1
        if (
            token not in entries
            or not isinstance(override, dict)
            or override.get("content") != entries[token]["content"]
        ):
            raise CheckpointError(
                f"`{settings.path}` and `{path}` disagree on the token with the id {key}.",
                remedy="Download the model again.",
            )
        entries[token].update(override)
    return entries


def _named(settings: JsonFile) -> list[str]:
    """Tokens to which the settings give a role, which makes them special."""
    values: dict[str, Any] = {**dict.fromkeys(_DEFAULT_ROLES, _DEFAULT), **settings.values}
    named = [value for key, value in values.items() if key.endswith("_token")]
    more = settings.values.get("additional_special_tokens") or []
    if not isinstance(more, list):
        raise settings.wrong("additional_special_tokens", "a list")
    named += more
    extra = settings.values.get("extra_special_tokens")
    named += extra.values() if isinstance(extra, dict) else []
    return [text for value in named if isinstance(text := _content(value), str)]


def _content(value: Any) -> Any:
    return value.get("content") if isinstance(value, dict) else value


def _text_and_type(entry: dict[str, Any]) -> tuple[str, TokenType]:
    text = entry["content"]
    # Qwen marks some control tokens as ordinary; their form gives them away.
    if entry.get("special") or (text.startswith("<|") and text.endswith("|>")):
        return text, TokenType.CONTROL
    return text.replace("\u2581", " "), TokenType.USER_DEFINED


def _roles(
    data: dict[str, Any], settings: JsonFile, config: JsonFile, ids: dict[str, int]
) -> dict[str, int]:
    """`tokenizer_config.json` outranks `config.json`, and that its `text_config`."""
    added = {entry["content"] for entry in data.get("added_tokens") or []}
    inner = config.section("text_config")
    roles = {}
    for role in _ROLES:
        text = _content(settings.values.get(f"{role}_token"))
        token = ids[text] if isinstance(text, str) and text in added else None
        for source in (config.values, inner):
            token = source.get(f"{role}_token_id") if token is None else token
        if type(token) is not int:  # none, or a list of ids for generation
            continue
        if token < 0:
            raise config.wrong(f"{role}_token_id", "a token id")
        roles[role] = token
    return roles


def _end(config: JsonFile, generation: JsonFile, ids: dict[str, int], path: Path) -> int:
    """The token that ends an answer, where neither settings name one: llama.cpp would take 11.

    A list of them, as for generation, has Qwen's end of a turn or else counts by its first.
    """
    turn = ids.get(_END_OF_TURN)
    for source in (config.values, config.section("text_config"), generation.values):
        value = source.get("eos_token_id")
        listed = value if isinstance(value, list) else [value]
        named = [token for token in listed if type(token) is int and token in ids.values()]
        if named:
            return turn if turn in named else named[0]
    if turn is None:
        raise CheckpointError(
            f"Neither `{config.path}` nor `{path}` tells which token ends an answer.",
            remedy='Add `"eos_token"` to `tokenizer_config.json`, as the model\'s maker means it.',
        )
    return turn


def _additions(data: dict[str, Any], settings: JsonFile) -> dict[str, bool]:
    # The post-processors that are let in put nothing around a text, whatever the settings say.
    add = {} if data.get("post_processor") is None else {"bos": False, "eos": False}
    for role in _ROLES:
        value = settings.values.get(f"add_{role}_token")
        if isinstance(value, bool):
            add.setdefault(role, value)
    return {role: value for role, value in add.items() if role in ("bos", "eos", "sep")}
