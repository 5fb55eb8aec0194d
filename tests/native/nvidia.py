"""Both backends of an NVIDIA card, out of one folder: `python3 dev.py nvidia`.

CUDA's library and Vulkan's lie beside the engine. Each has to be listed and usable for the same
card, to try itself out, and to answer with the drafter as without. Then how fast it is, and what
a load is estimated to take against what `nvidia-smi` counts more than before: within a tenth.
By the demo pair, and `--pair TARGET DRAFT` of any size. A line each; status 1 if one is not so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from app.binding import NativePair, devices, estimate
from app.library import Library

ROOT: Final = Path(__file__).resolve().parents[2]
BACKENDS: Final = ("cuda", "vulkan")
QUESTIONS: Final = ("What is DFlash?", "Where are my chats kept?", "How do I stop an answer?")
TOKENS: Final = 96
LARGEST: Final = 262_144  # tokens of context, with which the demo too takes more than a driver
READ: Final = 3000  # tokens of a prompt
ROUNDS: Final = 8
OFF: Final = 0.1
MIB: Final = 2**20

Row = dict[str, Any]


class Lacking(Exception):
    """What the machine, or what was found on it, is not."""


def slipstream(*args: object) -> Row:
    """What a command of the app prints. Raises Lacking where it fails."""
    return called("-m", "app", *args, "--json")


def called(*args: object) -> Row:
    command = [sys.executable, *map(str, args)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Lacking(f"{' '.join(command[1:])}: {(done.stdout + done.stderr).strip()[-1500:]}")
    told: Row = json.loads(done.stdout.splitlines()[-1])
    return told


def of_one_card(listed: Sequence[Row]) -> dict[str, str]:
    """Names of its devices by backend. Raises Lacking where one is not listed or not usable."""
    found: dict[str, Row] = {}
    for backend in BACKENDS:
        rows = [row for row in listed if row["backend"] == backend]
        usable = [row for row in rows if row["usable"]]
        first = found.get(BACKENDS[0])
        same = [row for row in usable if not first or row["description"] == first["description"]]
        if not same:
            why = (
                "; ".join(row["reason"] or row["description"] for row in rows) or "it is not there"
            )
            raise Lacking(f"{backend} has not that card: {why}")
        found[backend] = same[0]
    return {backend: row["name"] for backend, row in found.items()}


def answers(device: str) -> str:
    """The demo's, with and without drafter. Raises Lacking where they differ without a reason."""
    checks = slipstream("selftest", "--device", device)["checks"]
    same, exact, lengths = 0, None, []
    for question in QUESTIONS:
        ask = ("ask", question, "--device", device, "--max-tokens", TOKENS)
        drafted, plain = slipstream(*ask), slipstream(*ask, "--no-draft")
        same += drafted["token_ids"] == plain["token_ids"]
        exact = drafted["exact"]
        lengths.append(drafted["mean_accepted_length"])
    told = f"{same} of {len(QUESTIONS)} answers the same with and without drafter (exact: {exact})"
    if exact and same < len(QUESTIONS):
        raise Lacking(told)
    mean = sum(lengths) / len(lengths)
    return f"selftest green ({len(checks)} checks), {told}, mean accepted length {mean:.1f}"


def speed(device: str) -> str:
    told = slipstream("bench", "--device", device, "--runs", 1, "--max-tokens", TOKENS)
    governed = told["governor"]
    blocks = ", ".join(f"{row['tokens_per_s']:.0f} ({row['block']})" for row in told["rows"])
    return (
        f"plain {told['plain_tokens_per_s']:.0f} tokens/s, blocks {blocks}, "
        f"governor {governed['tokens_per_s']:.0f}"
    )


def fits(device: str, target: Path, draft: Path, n_ctx: int) -> str:
    """Raises Lacking where the estimate is off by more than a tenth."""
    row = called("-m", "tests.native.nvidia", "--fit", device, target, draft, n_ctx)
    off = row["estimate"] / row["used"] - 1
    told = (
        f"{target.stem}, context of {row['n_ctx']}: estimate {row['estimate'] / MIB:.0f} MiB, "
        f"nvidia-smi {row['used'] / MIB:.0f} MiB, off by {off:+.1%}; estimated in "
        f"{row['estimate_s']:.1f} s, loaded in {row['load_s']:.1f} s"
    )
    if abs(off) > OFF:
        raise Lacking(told)
    return told


def used() -> int:
    """Bytes that are taken of all cards."""
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    told = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    return sum(int(line) for line in told.split()) * MIB


def measured(device: str, target: Path, draft: Path, n_ctx: int) -> Row:
    """In a process of its own: a load beside what the driver takes for being in use."""
    devices()  # loads the backends
    demo = Library.of_user().open("demo")
    small = NativePair(demo.target, device=device, n_ctx=512)
    small.prompt(small.tokenize(QUESTIONS[0]), drafting=False)
    small.round(0)
    small.close()
    before, began = used(), time.perf_counter()
    told = estimate(target, draft, device=device, n_ctx=n_ctx or None)
    estimated = time.perf_counter()
    pair = NativePair(target, draft, device=device, n_ctx=n_ctx or None)
    loaded = time.perf_counter()
    pair.prompt(pair.tokenize("The quick brown fox jumps over the lazy dog. " * READ)[:READ])
    for _ in range(ROUNDS):
        pair.round(15)
    taken = used() - before
    info = pair.info
    pair.close()
    if info.n_layers_device < info.n_layers:
        raise Lacking(f"only {info.n_layers_device} of {info.n_layers} layers fit on the card")
    return {
        "n_ctx": info.n_ctx,
        "estimate": told.footprint.device.total,
        "used": taken,
        "estimate_s": estimated - began,
        "load_s": loaded - estimated,
    }


def everything(pair: tuple[Path, Path] | None) -> Iterator[tuple[str, bool]]:
    """Lines, and whether it is as it has to be."""
    try:
        names = of_one_card(slipstream("devices")["devices"])
    except Lacking as error:
        yield str(error), False
        return
    demo = Library.of_user().open("demo")
    assert demo.draft
    loads = [(demo.target, demo.draft, LARGEST)]
    loads += [(*pair, 0), (*pair, 131_072)] if pair else []
    for backend, name in names.items():
        steps = [partial(answers, name), partial(speed, name)]
        steps += [partial(fits, name, *load) for load in loads]
        for step in steps:
            try:
                yield f"{backend} ({name}): {step()}", True
            except Lacking as error:
                yield f"{backend} ({name}): NOT SO: {error}", False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="dev.py nvidia")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--pair", nargs=2, type=Path, metavar=("TARGET", "DRAFT"))
    parser.add_argument("--fit", nargs=4, help=argparse.SUPPRESS)  # of the process that measures
    options = parser.parse_args()
    if options.fit:
        device, target, draft, n_ctx = options.fit
        try:
            print(json.dumps(measured(device, Path(target), Path(draft), int(n_ctx))))
        except Lacking as error:
            print(error, file=sys.stderr)
            return 1
        return 0
    right = []
    for line, as_it_has_to_be in everything(options.pair and tuple(options.pair)):
        print(line, flush=True)
        right.append(as_it_has_to_be)
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
