"""A byte-level BPE vocabulary under Qwen3.5's pre-tokenizer, with its chat markers."""

from __future__ import annotations

import json
import multiprocessing.pool
import random
from pathlib import Path

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from .corpus import draw_chat

VOCAB_SIZE = 4096
# The regex of Qwen3.5's tokenizer.json; llama.cpp calls it the `qwen35` pre-tokenizer.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
MARKERS = (
    AddedToken("<|endoftext|>", special=True),
    AddedToken("<|im_start|>", special=True),
    AddedToken("<|im_end|>", special=True),
    AddedToken("<think>", special=False),
    AddedToken("</think>", special=False),
    AddedToken("<|mask|>", special=True),
)


def train(pool: multiprocessing.pool.Pool, seed: int, chats: int = 30_000) -> Tokenizer:
    """A tokenizer whose ids 0..VOCAB_SIZE-1 are all used; the markers come last, as in Qwen."""
    jobs = [(f"tokenizer/{seed}/{at}", min(1000, chats - at)) for at in range(0, chats, 1000)]
    texts = [text for part in pool.map(_texts, jobs, chunksize=1) for text in part]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE - len(MARKERS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*texts, *ROLES * chats], trainer)
    tokenizer.add_tokens(list(MARKERS))
    if tokenizer.get_vocab_size() != VOCAB_SIZE:
        raise ValueError(f"the corpus gives {tokenizer.get_vocab_size()} tokens, not {VOCAB_SIZE}")
    return tokenizer


ROLES = ["user\n", "assistant\n", "system\n"]  # each must be one token and a line end


def _texts(job: tuple[str, int]) -> list[str]:
    seed, count = job
    rng = random.Random(seed)
    return [m["content"] for _ in range(count) for m in draw_chat(rng).messages]


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes tokenizer.json and tokenizer_config.json."""
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "add_bos_token": False,
        "add_prefix_space": False,
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": 32768,
        "pad_token": "<|endoftext|>",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }
    text = json.dumps(config, indent=2, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")
