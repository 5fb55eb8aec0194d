"""The vocabulary of a checkpoint, in the form in which GGUF holds it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from gguf import GGUFWriter
from gguf.constants import TokenType

from app.convert.json_file import JsonFile, read_json
from app.convert.pretokenizer import recognise
from app.convert.special_tokens import SpecialTokens
from app.convert.template import chat_template
from app.errors import CheckpointError, is_text

FILE: Final = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """`tokens` and `types` have one entry for each row of the embedding."""

    tokens: list[str]
    types: list[TokenType]
    merges: list[str]
    special: SpecialTokens
    template: str | list[dict[str, str]] | None
    pre: str  # llama.cpp's name of the pre-tokenizer
    sha256: str  # of tokenizer.json: the same for both of a pair

    @classmethod
    def read(cls, folder: Path, config: JsonFile, rows: int) -> Tokenizer:
        """The tokenizer in `folder` for an embedding of `rows` rows.

        Raises `CheckpointError` or, for another tokenizer, `UnsupportedModelError`.
        """
        path = folder / FILE
        data = read_json(path)
        pre = recognise(data, str(path))
        settings = JsonFile.read_if_there(folder / "tokenizer_config.json")
        generation = folder / "generation_config.json"
        vocab = _vocabulary(data, path)
        special = SpecialTokens.read(data, settings, config, generation, vocab, path)
        highest = max([*vocab.values(), *special.added, *special.roles.values()])
        if highest >= rows:
            raise CheckpointError(
                f"`{path}` has the token id {highest}, but the embedding has {rows} rows.",
                remedy="Download the model again; weights and tokenizer must be of one revision.",
            )
        tokens = [f"[PAD{i}]" for i in range(rows)]
        types = [TokenType.UNUSED] * rows
        for text, token in vocab.items():
            tokens[token], types[token] = text, TokenType.NORMAL
        for token, (text, kind) in special.added.items():
            tokens[token], types[token] = text, kind
        if not is_text("".join(tokens)):
            raise _broken(path, "one of its tokens has half a character (a lone surrogate)")
        return cls(
            tokens=tokens,
            types=types,
            merges=_merges(data, vocab, path),
            special=special,
            template=chat_template(folder, settings),
            pre=pre,
            sha256=sha256(path.read_bytes()).hexdigest(),
        )

    def describe(self, header: GGUFWriter, *, mask_token: int | None = None) -> None:
        """Write everything under llama.cpp's keys. `mask_token` outranks the tokenizer's own."""
        header.add_tokenizer_model("gpt2")  # which stands for byte-level BPE
        header.add_tokenizer_pre(self.pre)
        header.add_token_list(self.tokens)
        header.add_token_types(self.types)
        header.add_token_merges(self.merges)
        self.special.describe(header, mask_token=mask_token)
        if self.template is not None:
            header.add_chat_template(self.template)


def _vocabulary(data: dict[str, Any], path: Path) -> dict[str, int]:
    vocab = data["model"].get("vocab")
    if not isinstance(vocab, dict) or not vocab:
        raise _broken(path, "it has no vocabulary")
    if not all(type(token) is int and token >= 0 for token in vocab.values()):
        raise _broken(path, "its vocabulary has a token id that is not a whole number from 0 up")
    if len(set(vocab.values())) != len(vocab):
        raise _broken(path, "two entries of its vocabulary have one id")
    return vocab


def _merges(data: dict[str, Any], vocab: dict[str, int], path: Path) -> list[str]:
    """Pairs joined by a space; a space inside a part is written as the byte alphabet does."""
    merges = data["model"].get("merges")
    if not isinstance(merges, list) or not merges:
        raise _broken(path, "it has no merges")
    result = []
    for entry in merges:
        pair = entry.split(" ") if isinstance(entry, str) else entry
        if not isinstance(pair, list) or [type(part) for part in pair] != [str, str]:
            raise _broken(path, f"the merge {entry!r} is not a pair")
        left, right = pair
        if not {left, right, left + right} <= vocab.keys():
            raise _broken(path, f"the merge {entry!r} names a token outside of the vocabulary")
        result.append(" ".join(part.replace(" ", "Ġ") for part in pair))
    return result


def _broken(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(f"`{path}` is broken: {reason}.", remedy="Download the model again.")
