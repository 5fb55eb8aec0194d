"""What is kept of the speed beside programs that compute all the time, on the CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rows import Row, processor, progress

_LOOPS = ((1, "≥ 0.6"), (2, "≥ 0.4"))
_PATIENCE_S = 20
_SECONDS = 6  # of the engine, each way


def measure(options: Namespace) -> list[Row]:
    """llama-bench of both trees and the engine, quiet and beside each number of loops."""
    machine = f"{processor()}, {options.threads} thread{'s' if options.threads > 1 else ''}"
    out = []
    with _engine(options) as engine:
        quiet = _measured(options, engine)
        for loops, wanted in _LOOPS:
            with ExitStack() as running:
                for _ in range(loops):
                    running.enter_context(_loop())
                kept = {
                    name: speed / quiet[name] if speed and quiet[name] else None
                    for name, speed in _measured(options, engine).items()
                }
            beside = f"kept beside {loops} busy loop{'s' if loops > 1 else ''}"
            bench, plain = f"llama-bench, plain, {beside}", f"engine, plain, {beside}"
            out += [
                Row(bench, "×", kept["base"], kept["ours"], machine, wanted),
                Row(plain, "×", None, kept["plain"], machine, wanted),
                Row(f"engine, under the governor, {beside}", "×", None, kept["governed"], machine),
            ]
    return out


def _measured(options: Namespace, engine: subprocess.Popen[str]) -> dict[str, float | None]:
    """Speeds in tokens/s; None: it took longer than `_PATIENCE_S`."""
    assert engine.stdin
    assert engine.stdout
    print(file=engine.stdin, flush=True)  # first, so that it has loaded when the others are timed
    found = json.loads(engine.stdout.readline())
    speeds: dict[str, float | None] = {
        way: found[f"{way}_tokens_per_s"] for way in ("plain", "governed")
    }
    for side in ("base", "ours"):
        speeds[side] = _bench(getattr(options, side), options.pair[0], options)
    progress(str(speeds))
    return speeds


@contextmanager
def _engine(options: Namespace) -> Iterator[subprocess.Popen[str]]:
    """`bench-round`, which measures once for each line: to load beside loops takes longer."""
    target, draft = options.pair
    command = [options.ours / "bench-round", "CPU", target, draft, options.length, options.rounds]
    with subprocess.Popen(
        [str(word) for word in [*command, "speeds", _SECONDS]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as engine:
        yield engine


def _bench(binaries: Path, target: Path, options: Namespace) -> float | None:
    command = [binaries / "llama-bench", "-m", target, "-t", options.threads]
    command += ["-ngl", 0, "-p", 0, "-n", 8, "-r", 1, "-o", "json"]
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
            timeout=_PATIENCE_S,
        )
    except subprocess.TimeoutExpired:  # the base beside loops
        return None
    return float(json.loads(done.stdout)[0]["avg_ts"])


@contextmanager
def _loop() -> Iterator[None]:
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        loop.kill()
        loop.wait()
