"""What only matters on a graphics card: long contexts, long prompts, little shared memory."""

from __future__ import annotations

import json
import os
import subprocess
from argparse import Namespace
from pathlib import Path

from rows import Row, progress

LONG = 16_000  # tokens of context
PROMPT = 2048
SHARED_KIB = 99  # of a block on compute capability 8.6, 8.9 and 12.x


def measure(options: Namespace) -> list[Row]:
    target, draft = options.pair
    program = [options.ours / "bench-round", options.device, target, draft, options.length]

    def engine(tokens: int, cache: str, **env: str) -> tuple[str, float, float]:
        """The device; ms of a plain step and of a round of the whole block."""
        found = json.loads(_run([*program, options.rounds, "at", tokens, cache], env))
        progress(str(found))
        return found["device"], found["plain_ms"], found["round_ms"]

    out = []
    for cache in ("f16", "q8_0"):
        device, plain, whole = engine(LONG, cache)
        at = f"at {LONG:,} tokens, cache in {cache}"
        out += [
            Row(f"engine, a plain step {at}", "ms", None, plain, device),
            Row(f"engine, a round {at}", "ms", None, whole, device),
            Row("the same, in plain steps", "steps", None, whole / plain, device, "≤ 1.7"),
        ]
    if options.device.startswith("CUDA"):
        _, plain, whole = engine(300, "f16")
        _, plain_small, whole_small = engine(300, "f16", GGML_CUDA_FEW_SHARED=str(SHARED_KIB))
        less = f"with {SHARED_KIB} KiB of shared memory"
        out += [
            Row(f"a plain step {less}, over all", "×", None, plain_small / plain, device, "≤ 1.1"),
            Row(f"a round {less}, over all", "×", None, whole_small / whole, device, "≤ 1.1"),
        ]
    base, ours = (
        _prompt(getattr(options, side), target, options.device) for side in ("base", "ours")
    )
    name = f"llama-bench, a prompt of {PROMPT:,} tokens"
    out.append(Row(name, "tokens/s", base, ours, device, "ratio ≥ 0.95"))
    return out


def _prompt(binaries: Path, target: Path, device: str) -> float:
    """Tokens/s."""
    command = [binaries / "llama-bench", "-m", target, "-ngl", 99, "-fa", 1, "-n", 0, "-r", 3]
    command += ["-dev", device, "-p", PROMPT, "-o", "json"]
    return float(json.loads(_run(command, {}))[0]["avg_ts"])


def _run(command: list[object], env: dict[str, str]) -> str:
    words = [str(word) for word in command]
    progress(" ".join([*(f"{name}={value}" for name, value in env.items()), *words]))
    return subprocess.run(
        words, env=os.environ | env, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
