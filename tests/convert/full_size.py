"""A checkpoint of the size of Qwen3.5-4B, and what converting it takes: `python3 dev.py full-size`.

The files have the names, shapes and shards of the real ones, vision and multi-token prediction
among them, and a vocabulary as large; the numbers are by chance. Converts to the type that is
asked for, on `--cores` cores, and prints time, peak memory and peak disk. Needs 13 GB of disk in
`--folder`, which is empty again afterwards.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.convert import tiny

SHAPE: Final = tiny.Target(
    **{"layers": 32, "hidden": 2560, "ff": 9216, "heads": 16, "kv_heads": 4, "head_dim": 256},
    **{"key_heads": 16, "value_heads": 32, "linear_dim": 128, "vocab": 248_320},
    **{"mtp": True, "vision": True},
)
SHARD: Final = 4_500_000_000  # bytes
PIECE: Final = 1 << 24  # numbers made at once
SEED: Final = 4


def shapes(layers: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield from tiny.target_shapes(tiny.replace(SHAPE, layers=layers))
    for block in range(1, 25):  # beside the one there: about what the real vision tower takes
        yield f"model.visual.blocks.{block}.attn.qkv.weight", (3072, 1024)
        yield f"model.visual.blocks.{block}.mlp.linear_fc1.weight", (4096, 1024)
        yield f"model.visual.blocks.{block}.mlp.linear_fc2.weight", (1024, 4096)


def converted_bytes(layers: int) -> int:
    """Of the weights, those that are read: vision and multi-token prediction are left out."""
    left_out = ("model.visual.", "mtp.")
    return sum(
        2 * math.prod(shape) for name, shape in shapes(layers) if not name.startswith(left_out)
    )


def write_checkpoint(folder: Path, layers: int) -> int:
    """Writes it shard by shard; the result is the bytes of its weights."""
    folder.mkdir(parents=True)
    config = tiny.target_config(tiny.replace(SHAPE, layers=layers))
    config["text_config"]["rope_parameters"]["mrope_section"] = [11, 11, 10]
    tiny.write_json(folder / "config.json", config)
    tiny.write_json(folder / "generation_config.json", {"temperature": 0.7, "top_k": 20})
    tiny.write_tokenizer(folder, SHAPE)
    tiny.write_json(folder / "tokenizer.json", vocabulary(SHAPE.vocab - 320))
    bits = _numbers()
    groups: list[list[tuple[str, tuple[int, ...]]]] = [[]]
    for name, shape in shapes(layers):
        if 2 * sum(math.prod(s) for _, s in groups[-1]) > SHARD:
            groups.append([])
        groups[-1].append((name, shape))
    weight_map: dict[str, str] = {}
    for i, group in enumerate(groups):
        file = f"model-{i + 1:05d}-of-{len(groups):05d}.safetensors"
        _write_shard(folder / file, group, bits)
        weight_map |= dict.fromkeys((name for name, _ in group), file)
    tiny.write_json(folder / "model.safetensors.index.json", {"weight_map": weight_map})
    return sum(2 * math.prod(shape) for _, shape in shapes(layers))


def vocabulary(merges: int) -> dict[str, Any]:
    """tiny's tokenizer with as many merges more, of letters by chance."""
    chance = random.Random(SEED)
    made = tiny.tokenizer_json()
    words: dict[str, int] = made["model"]["vocab"]
    added = len(made["added_tokens"])
    letters = [word for word in words if word.isascii() and word.isalpha()]
    while merges:
        left, right = chance.choice(letters), chance.choice(letters)
        if left + right not in words:
            words[left + right] = len(words)
            if len(left + right) < 6:  # the longer ones would soon be all that is drawn
                letters.append(left + right)
            made["model"]["merges"].append([left, right])
            merges -= 1
    for i, token in enumerate(made["added_tokens"][:added]):
        token["id"] = len(words) + i
    return made


def _numbers() -> np.ndarray[Any, np.dtype[np.uint16]]:
    values = np.random.default_rng(SEED).standard_normal(PIECE, np.float32) * np.float32(0.02)
    return tiny.to_dtype(values, "BF16")[1]


def _write_shard(file: Path, group: Iterable[tuple[str, tuple[int, ...]]], bits: Any) -> None:
    header, at = {}, 0
    for name, shape in group:
        span = [at, at + 2 * math.prod(shape)]
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": span}
        at = span[1]
    text = json.dumps(header).encode()
    with file.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        left = at // 2
        while left:
            count = min(left, PIECE)
            stream.write(bits[:count].tobytes())
            left -= count


class Disk(threading.Thread):
    """The most that the files in `folder` took at any moment."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.peak, self.done = folder, 0, threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.2):
            sizes = [f.stat().st_size for f in self.folder.glob("*") if f.is_file()]
            self.peak = max(self.peak, sum(sizes))


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev.py full-size", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--type", default="q4_k_m")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--layers", type=int, default=SHAPE.layers, help="fewer, to try it")
    args = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="full-size-", dir=args.folder))
    try:
        size = write_checkpoint(place / "source", args.layers)
        print(f"{size / 1e9:.2f} GB of weights in {place}", flush=True)
        (place / "out").mkdir()
        disk = Disk(place / "out")
        disk.start()
        command = [sys.executable, "-m", "app", "convert", "--json", "--type", args.type]
        command += ["--target", str(place / "source"), "--out", str(place / "out")]
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
        start = time.monotonic()
        done = subprocess.run(command, capture_output=True, check=False)
        seconds = time.monotonic() - start
        disk.done.set()
        if done.returncode:
            print(done.stdout.decode() + done.stderr.decode(), file=sys.stderr)
            return 1
        target = json.loads(done.stdout)["target"]
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = usage.ru_utime + usage.ru_stime
        print(
            f"{args.type} on {args.cores} cores: {seconds:.0f} s, "
            f"of them {target['seconds']:.0f} s writing "
            f"({converted_bytes(args.layers) / 1e6 / target['seconds']:.0f} MB/s of source, "
            f"without what is left out; {cpu:.0f} s of CPU), "
            f"peak memory {usage.ru_maxrss / 1e6:.2f} GB, file {target['bytes'] / 1e9:.2f} GB, "
            f"peak disk {disk.peak / 1e9:.2f} GB"
        )
        return 0
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main())
