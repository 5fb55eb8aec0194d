"""What going back to the accepted tokens costs, one layer alone: the program bench-rewind.

It holds both sides, the base's graph of snapshots and ours of a trace, and runs them in turns.
"""

from __future__ import annotations

import json
import subprocess
from argparse import Namespace

from rows import Row, progress

LAYERS = 24  # of Qwen3.5-4B that have such a state
MIB = 1 << 20


def measure(options: Namespace) -> list[Row]:
    command = [options.ours / "bench-rewind", options.threads, options.passes]
    progress(" ".join(map(str, command)))
    done = subprocess.run(
        [str(part) for part in command], stdout=subprocess.PIPE, text=True, check=True
    )
    devices = [json.loads(line) for line in done.stdout.splitlines()]

    def pair(device: dict[str, float], figure: str, scale: float) -> tuple[float, float]:
        return device[f"snapshots_{figure}"] * scale, device[f"trace_{figure}"] * scale

    kept = pair(devices[0], "kept", LAYERS / MIB)
    written = pair(devices[0], "written", LAYERS / MIB)
    out = [
        Row("recurrent memory with rollback", "MiB", *kept, "any", "≤ 80 MiB"),
        Row("state written by a verify of 16 tokens", "MiB", *written, "any", "≤ 60 MiB"),
    ]
    for device in devices:
        on_cpu = device["kind"] == "cpu"
        where = f"{device['device']}, {options.threads} threads" if on_cpu else device["device"]
        times = pair(device, "us", 1)
        wanted = "ratio ≤ 0.33" if on_cpu else "ratio ≤ 0.5"
        out.append(Row("one layer: verify of 16 tokens and rewind", "µs", *times, where, wanted))
    return out
