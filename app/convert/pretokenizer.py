"""Which pre-tokenizer a `tokenizer.json` uses: known by what it does, not by its name.

llama.cpp has the rules of known pre-tokenizers built in and picks one by name. A wrong name
does not fail, it only splits some texts into other tokens, so what is not exactly known is
refused. (llama.cpp's own converter knows it by a hash over token ids, and transformers
replaces the rules of the file by its own on loading, so that a changed file goes unnoticed.)
"""

from __future__ import annotations

from typing import Any, Final

from app.errors import UnsupportedModelError

QWEN35: Final = "qwen35"
QWEN35_REGEX: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def recognise(tokenizer: dict[str, Any], place: str) -> str:
    """llama.cpp's name of the pre-tokenizer. Raises `UnsupportedModelError` with the reason."""
    reason = (
        _model_objection(tokenizer.get("model"))
        or _normalizer_objection(tokenizer.get("normalizer"))
        or _splitter_objection(tokenizer.get("pre_tokenizer"))
        or _post_processor_objection(tokenizer.get("post_processor"))
    )
    if reason:
        raise UnsupportedModelError(
            f"The tokenizer in `{place}` is not that of Qwen3.5: {reason}.",
            remedy="Use the original `tokenizer.json`; another tokenizer would give other tokens.",
        )
    return QWEN35


def _model_objection(model: Any) -> str | None:
    if not isinstance(model, dict) or model.get("type") != "BPE":
        return "it is not a byte-level BPE"
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(key):
            return f"`model.{key}` is {model[key]!r}"
    return "`model.ignore_merges` is set" if model.get("ignore_merges") else None


def _normalizer_objection(normalizer: Any) -> str | None:
    # NFC is the one of Qwen3.5. The runtime leaves text as it is, which is the same for
    # text in NFC, and nearly all text is.
    if normalizer is None or normalizer == {"type": "NFC"}:
        return None
    return f"it changes text before splitting ({_kind(normalizer)})"


def _splitter_objection(splitter: Any) -> str | None:
    steps = splitter.get("pretokenizers") if _kind(splitter) == "Sequence" else [splitter]
    if not isinstance(steps, list) or [_kind(step) for step in steps] != ["Split", "ByteLevel"]:
        return "it does not split by one regex and then into bytes"
    split, byte_level = steps
    pattern = split.get("pattern")
    regex = pattern.get("Regex") if isinstance(pattern, dict) else None
    if regex != QWEN35_REGEX:
        return f"it splits by the regex `{regex}`"
    if split.get("behavior") != "Isolated" or split.get("invert"):
        return "it drops or joins what its regex finds"
    if byte_level.get("add_prefix_space") or byte_level.get("use_regex", True):
        return "it adds a space or splits again by a second regex"
    return None


def _post_processor_objection(processor: Any) -> str | None:
    steps = processor.get("processors") if _kind(processor) == "Sequence" else [processor]
    if processor is None or (
        isinstance(steps, list) and all(_kind(step) == "ByteLevel" for step in steps)
    ):
        return None
    return f"it adds tokens of its own ({_kind(processor)})"


def _kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, dict) else None
