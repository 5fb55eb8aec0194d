"""Which pre-tokenizer a `tokenizer.json` uses: known by what it does, not by its name or text.

llama.cpp has the rules of known pre-tokenizers built in and picks one by name. A wrong name
does not fail, it only splits some texts into other tokens, so what is not surely known is
refused. A tokenizer saved anew by another version of transformers writes its regex otherwise
and does the same, or writes nearly the same and does not: so the one in the file is run beside
the known ones on texts made to tell them apart.
"""

from __future__ import annotations

import json
from typing import Any, Final

from tokenizers import Tokenizer

from app.convert.nasty import texts
from app.errors import UnsupportedModelError

QWEN35: Final = "qwen35"
KNOWN: Final = {  # llama.cpp's name: the regex that it stands for
    QWEN35: (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
        r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    # of Qwen2 and Qwen3, which part words at combining marks
    "qwen2": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}


def recognise(tokenizer: dict[str, Any], place: str) -> str:
    """llama.cpp's name of the pre-tokenizer. Raises `UnsupportedModelError` with the reason."""
    reason = (
        _model_objection(tokenizer.get("model"))
        or _normalizer_objection(tokenizer.get("normalizer"))
        or _post_processor_objection(tokenizer.get("post_processor"))
    )
    name = None if reason else _same_splitter(tokenizer.get("pre_tokenizer"))
    if name is None:
        reason = reason or "it splits text in another way"
        raise UnsupportedModelError(
            f"The tokenizer in `{place}` is not that of Qwen3.5: {reason}.",
            remedy="Use the original `tokenizer.json`; another tokenizer would give other tokens.",
        )
    return name


def _model_objection(model: Any) -> str | None:
    if not isinstance(model, dict) or model.get("type") != "BPE":
        return "it is not a byte-level BPE"
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(key):
            return f"`model.{key}` is {model[key]!r}"
    return "`model.ignore_merges` is set" if model.get("ignore_merges") else None


def _normalizer_objection(normalizer: Any) -> str | None:
    # The engine composes text before it splits it, for every model.
    steps = _steps(normalizer, "normalizers")
    if steps and all(step == {"type": "NFC"} for step in steps):
        return None
    if normalizer is None:
        return "it does not compose characters (NFC) before splitting"
    return f"it changes text before splitting ({_kind(normalizer)})"


def _same_splitter(splitter: Any) -> str | None:
    """The known pre-tokenizer that splits all texts as `splitter` does."""
    samples = texts()
    found = _splits(splitter, samples)
    return next(
        (name for name, regex in KNOWN.items() if found == _splits(_written(regex), samples)), None
    )


def _written(regex: str) -> dict[str, Any]:
    """A pre-tokenizer as `tokenizer.json` has it: split by `regex`, then bytes."""
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    return {"type": "Sequence", "pretokenizers": [split, {**byte_level, "use_regex": False}]}


def _splits(splitter: Any, samples: list[str]) -> list[list[str]] | None:
    """The pieces of each text; None if it is no pre-tokenizer at all."""
    model = {"type": "BPE", "vocab": {}, "merges": []}
    whole = {"version": "1.0", "added_tokens": [], "model": model, "pre_tokenizer": splitter}
    try:
        made = Tokenizer.from_str(json.dumps(whole)).pre_tokenizer
    except Exception:  # of the library, which has no class of its own for it
        return None
    if made is None:
        return None
    return [[piece for piece, _ in made.pre_tokenize_str(text)] for text in samples]


def _post_processor_objection(processor: Any) -> str | None:
    steps = _steps(processor, "processors")
    if processor is None or (steps is not None and all(map(_adds_nothing, steps))):
        return None
    return f"it adds tokens of its own ({_kind(processor)})"


def _adds_nothing(step: Any) -> bool:
    if _kind(step) != "TemplateProcessing":
        return bool(_kind(step) == "ByteLevel")
    # What transformers saves where a model wants no tokens around its text: the text alone.
    match step.get("single"):
        case [{"Sequence": {"id": "A"}, **more}]:
            return not more
    return False


def _steps(part: Any, key: str) -> list[Any] | None:
    """What a sequence does one after the other, else the part alone; None where it is broken."""
    steps = part.get(key) if _kind(part) == "Sequence" else [part]
    return steps if isinstance(steps, list) else None


def _kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, dict) else None
