"""Whether a converted file does what its source does: its tokens."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from tokenizers import Tokenizer

from app.binding import NativeVocabulary
from app.convert.nasty import texts
from app.convert.tokenizer import FILE
from app.errors import CheckpointError, ModelFileError
from app.jobs import CancelToken

_SHOWN = 40  # characters of a text in a message


def verify_tokens(source: Path, file: Path, cancelled: CancelToken | None = None) -> int:
    """Compare the token ids of `file` with those of the tokenizer in the folder `source`.

    The texts are made to tell tokenizers apart, hold each special token, and come composed and
    decomposed; the engine composes what it is given. Returns their number. Raises
    `ModelFileError` at the first that differs, `JobCancelled`, and what reading either raises.
    """
    reference = _reference(source / FILE)
    # How batches were made in training, which a file may keep: no part of what a text is.
    reference.no_padding()
    reference.no_truncation()
    special = [token.content for token in reference.get_added_tokens_decoder().values()]
    samples = texts(tuple(special))
    apart = [unicodedata.normalize("NFD", text) for text in samples]
    samples += [text for text, whole in zip(apart, samples, strict=True) if text != whole]
    with NativeVocabulary(file) as vocabulary:
        for text in samples:
            if cancelled:
                cancelled.check()
            wanted = reference.encode(text, add_special_tokens=False).ids
            if vocabulary.tokenize(unicodedata.normalize("NFC", text)) != wanted:
                raise ModelFileError(
                    f"`{file}` splits {text[:_SHOWN]!r} into other tokens than "
                    f"`{source / FILE}`, which it was made from.",
                    remedy="Choose the original model: this tokenizer is another than Qwen3.5's.",
                )
    return len(samples)


def _reference(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_buffer(path.read_bytes())  # a path may be no UTF-8
    except Exception as error:  # of the library, which has no class of its own for it
        raise CheckpointError(
            f"`{path}` cannot be read as a tokenizer: {error}.", remedy="Download the model again."
        ) from error
