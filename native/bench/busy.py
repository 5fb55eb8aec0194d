"""What is kept of the speed beside programs that compute all the time, on the CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rows import Row, processor, progress

_LOOPS = ((1, "≥ 0.6"), (2, "≥ 0.4"))


def measure(options: Namespace) -> list[Row]:
    """llama-bench of both trees and the engine, quiet and beside each number of loops."""
    machine = f"{processor()}, {options.threads} threads"
    quiet = _measured(options)
    out = []
    for loops, wanted in _LOOPS:
        with ExitStack() as running:
            for _ in range(loops):
                running.enter_context(_loop())
            kept = {name: speed / quiet[name] for name, speed in _measured(options).items()}
        beside = f"kept beside {loops} busy loop{'s' if loops > 1 else ''}"
        out += [
            Row(f"llama-bench, plain, {beside}", "×", kept["base"], kept["ours"], machine, wanted),
            Row(f"engine, plain, {beside}", "×", None, kept["plain"], machine, wanted),
            Row(f"engine, under the governor, {beside}", "×", None, kept["governed"], machine),
        ]
    return out


def _measured(options: Namespace) -> dict[str, float]:
    """Speeds in tokens/s."""
    target, draft = options.pair
    speeds = {side: _bench(getattr(options, side), target, options) for side in ("base", "ours")}
    command = [options.ours / "bench-round", "CPU", target, draft, options.length, 4]
    found = _json(command)
    speeds |= {"plain": 1000 / found["plain_ms"], "governed": found["governed_tokens_per_s"]}
    progress(str(speeds))
    return speeds


def _bench(binaries: Path, target: Path, options: Namespace) -> float:
    command = [binaries / "llama-bench", "-m", target, "-t", options.threads]
    found = _json([*command, "-ngl", 0, "-p", 0, "-n", 32, "-r", 3, "-o", "json"])
    return float(found[0]["avg_ts"])


def _json(command: list[object]) -> Any:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    return json.loads(done.stdout)


@contextmanager
def _loop() -> Iterator[None]:
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        loop.kill()
        loop.wait()
