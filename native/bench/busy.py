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
_PATIENCE_S = 60


def measure(options: Namespace) -> list[Row]:
    """llama-bench of both trees and the engine, quiet and beside each number of loops."""
    machine = f"{processor()}, {options.threads} threads"
    quiet = _measured(options)
    out = []
    for loops, wanted in _LOOPS:
        with ExitStack() as running:
            for _ in range(loops):
                running.enter_context(_loop())
            kept = {
                name: speed / quiet[name] if speed and quiet[name] else None
                for name, speed in _measured(options).items()
            }
        beside = f"kept beside {loops} busy loop{'s' if loops > 1 else ''}"
        out += [
            Row(f"llama-bench, plain, {beside}", "×", kept["base"], kept["ours"], machine, wanted),
            Row(f"engine, plain, {beside}", "×", None, kept["plain"], machine, wanted),
            Row(f"engine, under the governor, {beside}", "×", None, kept["governed"], machine),
        ]
    return out


def _measured(options: Namespace) -> dict[str, float | None]:
    """Speeds in tokens/s; None: it took longer than a minute."""
    target, draft = options.pair
    speeds: dict[str, float | None] = {
        side: _bench(getattr(options, side), target, options) for side in ("base", "ours")
    }
    command = [options.ours / "bench-round", "CPU", target, draft, options.length, options.rounds]
    found = _json([*command, "speeds"])
    speeds |= {way: found[f"{way}_tokens_per_s"] for way in ("plain", "governed")}
    progress(str(speeds))
    return speeds


def _bench(binaries: Path, target: Path, options: Namespace) -> float | None:
    command = [binaries / "llama-bench", "-m", target, "-t", options.threads]
    try:
        found = _json([*command, "-ngl", 0, "-p", 0, "-n", 32, "-r", 2, "-o", "json"], _PATIENCE_S)
    except subprocess.TimeoutExpired:  # the base beside loops: hours
        return None
    return float(found[0]["avg_ts"])


def _json(command: list[object], patience: float | None = None) -> Any:
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=patience,
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
