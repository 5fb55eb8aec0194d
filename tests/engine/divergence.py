"""How far a type takes the demo's target from its BF16: `python3 dev.py divergence`.

A line a file: bytes, mean KL divergence of its next-token distributions from those of BF16 over
held-out questions with their answers, how often the likeliest token is the same, and the largest
error of a tensor. `--parts` gives instead what one step more for one part of a layer takes away
of the divergence of Q4_K_M, by which the recipe was chosen, and `--drafts` how many drafted tokens
a target of Q4_K_M accepts by the drafter's type. See README.md, "Types".
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from app.binding import NativePair, NativeVocabulary
from app.binding.inspection import eval_target
from app.convert import (
    Converted,
    Recipe,
    WeightType,
    conversion,
    convert_draft,
    convert_target,
    mix,
    outline,
)

DEMO: Final = Path(__file__).resolve().parents[2] / "assets" / "demo"
PARTS: Final = (
    *("ssm_out", "attn_output", "attn_qkv", "attn_gate", "attn_q", "attn_k", "attn_v"),
    *("ssm_alpha", "ssm_beta", "ffn_down", "ffn_gate", "ffn_up", "token_embd"),
)
ROWS: Final = 16  # tokens of a pass
LONGEST: Final = 160  # tokens of an answer

Logits = list[npt.NDArray[np.float32]]


def heldout_texts(count: int) -> list[str]:
    held: dict[str, list[Any]] = json.loads((DEMO / "train" / "heldout.json").read_text("utf-8"))
    turn = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n{}<|im_end|>\n"
    entries = held["guide"]
    chosen = [entries[i * len(entries) // count] for i in range(min(count, len(entries)))]
    return [turn.format(entry["prompt"], entry["answers"][0]) for entry in chosen]


def logits_of(file: Path, draft: Path, texts: Iterable[str], threads: int) -> Logits:
    """Of each text, [tokens, vocabulary]."""
    with NativeVocabulary(file) as vocabulary:
        tokens = [vocabulary.tokenize(text) for text in texts]
    pair = NativePair(file, draft, n_ctx=1024, threads=threads)  # more rows a pass than alone
    try:
        return [eval_target(pair, one, ROWS) for one in tokens]
    finally:
        pair.close()


def divergence(exact: Logits, found: Logits) -> tuple[float, float]:
    """Mean over all positions: KL(exact || found) in nats, and whether the likeliest agree."""
    kl, same = [], []
    for p, q in zip(exact, found, strict=True):
        log_p, log_q = _log_softmax(p), _log_softmax(q)
        kl.append((np.exp(log_p) * (log_p - log_q)).sum(axis=1))
        same.append(p.argmax(axis=1) == q.argmax(axis=1))
    return float(np.concatenate(kl).mean()), float(np.concatenate(same).mean())


def _log_softmax(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    result: npt.NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def with_raised(parts: Sequence[str], kind: WeightType, output: Path) -> Converted:
    """The demo's target with one step more for these parts, made in this process."""
    before = outline.choose_kinds, conversion.run_apart
    outline.choose_kinds = partial(mix.choose_kinds, raised=parts)
    conversion.run_apart = lambda work, jobs, progress, cancelled, _: work(
        jobs, progress, cancelled
    )
    try:
        return convert_target(DEMO / "target", output, kind, recipe=Recipe.SLIPSTREAM)
    finally:
        outline.choose_kinds, conversion.run_apart = before


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev.py divergence", description=__doc__)
    parser.add_argument("--parts", action="store_true", help="one part of a layer at a time")
    parser.add_argument("--drafts", action="store_true", help="the drafter's type instead")
    parser.add_argument("--texts", type=int, default=95, help="held-out texts (default: all 95)")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    if args.drafts:
        return drafts(args.texts, args.threads)
    texts = heldout_texts(args.texts)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.gguf"
        convert_target(DEMO / "target", file, WeightType.BF16)
        draft = convert_draft(DEMO / "draft", DEMO / "target", Path(folder) / "d", WeightType.BF16)
        exact = logits_of(file, draft.path, texts, args.threads)
        count = sum(len(one) for one in exact)
        print(f"{len(texts)} texts, {count} positions; BF16: {file.stat().st_size:,} bytes")
        print("| file | bytes | more | KL, 1e-3 | same token | largest error of a tensor |")
        print("| --- | ---: | ---: | ---: | ---: | --- |", flush=True)
        plain = 0
        for name, kind, parts in _files(args.parts):
            done = with_raised(parts, kind, file)
            plain = done.bytes if not parts else plain
            kl, same = divergence(exact, logits_of(file, draft.path, texts, args.threads))
            worst = max(done.errors, key=lambda error: error.error)
            print(
                f"| {name} | {done.bytes:,} | {done.bytes / plain - 1:+.1%} | {kl * 1e3:.2f} "
                f"| {same:.1%} | {worst.error:.1%}, {worst.name} |",
                flush=True,
            )
    return 0


def drafts(count: int, threads: int) -> int:
    """A line a type of the drafter, beside one target."""
    with tempfile.TemporaryDirectory() as folder:
        target = convert_target(DEMO / "target", Path(folder) / "t", WeightType.Q4_K_M).path
        print("| drafter | bytes | mean accepted length | rounds | tokens |")
        print("| --- | ---: | ---: | ---: | ---: |", flush=True)
        for kind in reversed(WeightType):
            if kind in (WeightType.F32, WeightType.F16):
                continue
            file = Path(folder) / "d"
            done = convert_draft(DEMO / "draft", DEMO / "target", file, kind, recipe=Recipe.LLAMA)
            rounds, tokens = _drafted(target, file, heldout_texts(count), threads)
            print(
                f"| {kind} | {done.bytes:,} | {tokens / rounds:.3f} | {rounds} | {tokens} |",
                flush=True,
            )
    return 0


def _drafted(target: Path, draft: Path, texts: Iterable[str], threads: int) -> tuple[int, int]:
    """Rounds, and tokens that they gave: whole blocks, greedy, up to the end of each answer."""
    rounds = tokens = 0
    with NativeVocabulary(target) as vocabulary:
        prompts = [vocabulary.tokenize(text[: text.rindex("assistant\n") + 10]) for text in texts]
    pair = NativePair(target, draft, n_ctx=1024, threads=threads)
    try:
        for prompt in prompts:
            pair.reset()
            last, _ = pair.prompt(prompt)
            taken = 0
            while not pair.is_end(last) and taken < LONGEST:
                emitted = pair.round(pair.info.block - 1).emitted
                end = next((i for i, one in enumerate(emitted, 1) if pair.is_end(one)), None)
                rounds, taken, last = rounds + 1, taken + (end or len(emitted)), emitted[-1]
                if end:
                    break
            tokens += taken
    finally:
        pair.close()
    return rounds, tokens


def _files(by_part: bool) -> list[tuple[str, WeightType, tuple[str, ...]]]:
    if by_part:
        kind = WeightType.Q4_K_M
        rows = [(f"{kind}, {part} raised", kind, (part,)) for part in PARTS]
        return [(kind, kind, ()), *rows]
    return [
        (f"{kind}, {recipe}", kind, raised)
        for kind in (WeightType.Q8_0, WeightType.Q6_K, WeightType.Q5_K_M, WeightType.Q4_K_M)
        for recipe, raised in ((Recipe.LLAMA, ()), (Recipe.SLIPSTREAM, mix.SENSITIVE))
        if not (kind is WeightType.Q8_0 and raised)
    ]


if __name__ == "__main__":
    raise SystemExit(main())
