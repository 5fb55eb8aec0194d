"""The `slipstream.*` keys: from what a file was made, and which pair it belongs to.

A drafter can fit a foreign target in every size and still be useless, so both files of a pair
carry the same fingerprints, which are compared when the pair is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from gguf import GGUFWriter

from app.errors import valid_text

FORMAT: Final = 1  # of these keys


@dataclass(frozen=True, slots=True)
class Passport:
    role: str  # `target` or `draft`
    source: str  # what was converted: a repository's name, or a folder's
    config_sha256: str  # of its config.json
    target_config_sha256: str
    tokenizer_sha256: str  # of the target's tokenizer.json
    target_layers: int
    target_hidden: int
    target_vocab: int
    recipe: str  # how a quantised file shares its bytes among the tensors

    def describe(self, header: GGUFWriter) -> None:
        header.add_uint32("slipstream.format", FORMAT)
        header.add_string("slipstream.role", self.role)
        header.add_string("slipstream.recipe", self.recipe)
        header.add_string("slipstream.source.name", valid_text(self.source))
        header.add_string("slipstream.source.config_sha256", self.config_sha256)
        header.add_string("slipstream.pair.target_config_sha256", self.target_config_sha256)
        header.add_string("slipstream.pair.tokenizer_sha256", self.tokenizer_sha256)
        header.add_uint32("slipstream.pair.target_layers", self.target_layers)
        header.add_uint32("slipstream.pair.target_hidden", self.target_hidden)
        header.add_uint32("slipstream.pair.target_vocab", self.target_vocab)


def fingerprint(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
