"""Our engine's round: the program bench-round, over slipstream.h. The base is its llama-server."""

from __future__ import annotations

import json
import subprocess
from argparse import Namespace

import server_bench
from rows import Row, progress

# Mean accepted lengths of copies by script, a block of 16: tests/engine/test_lookup.py.
LOOKED_UP = {
    "a text that is repeated": 12.2,
    "one with another word in twenty": 4.8,
    "code with three mends": 14.2,
}


def measure(options: Namespace, server: list[Row]) -> list[Row]:
    """`server`: the rows of `server_bench`, measured on the same machine before."""
    target, draft = options.pair
    program = options.ours / "bench-round"
    command = [program, options.device, target, draft, options.length, options.rounds]
    command += ["texts"] if options.texts else []
    progress(" ".join(map(str, command)))
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    progress(done.stdout.strip())
    base = {row.name: row.base for row in server}
    plain_base, round_base = base.get(server_bench.PLAIN), base.get(server_bench.ROUND)
    server_round = next((row.ours for row in server if row.name == server_bench.ROUND), None)
    where, at = found["device"], f"mean accepted length {options.length:g}"

    def row(name: str, unit: str, base: float | None, ours: float, wanted: str = "") -> Row:
        return Row(name, unit, base, ours, where, wanted)

    plain, whole, costs = found["plain_ms"], found["round_ms"], found["costs"]
    looked_up = costs[f"verify_{found['block']}"]  # a round whose draft takes no time
    in_plain = round_base * plain_base / 1000 if round_base and plain_base else None
    gain = options.length / in_plain if in_plain else None
    return [
        row("engine, a plain step", "ms", 1000 / plain_base if plain_base else None, plain),
        row("engine, a round of the whole block", "ms", round_base, whole, "ratio ≤ 0.4"),
        row("the same, in plain steps of that side", "steps", in_plain, whole / plain, "≤ 1.5"),
        *(
            [
                row(
                    "llama-server's round over the engine's",
                    "×",
                    None,
                    server_round / whole,
                    "≤ 1.25",
                )
            ]
            if server_round
            else []
        ),
        row(
            f"tokens/s over plain, {at}", "×", gain, options.length * plain / whole, "≥ 4 on a GPU"
        ),
        row(
            f"the same under the governor, mean width {found['governed_width']:g}",
            "×",
            None,
            found["governed_tokens_per_s"] * plain / 1000,
            "≥ 1.2 on a CPU",
        ),
        row(
            f"the governor over the best fixed width, {found['fixed_width']}",
            "×",
            None,
            found["governed_tokens_per_s"] / found["fixed_tokens_per_s"],
            "≥ 0.9",
        ),
        row(
            f"engine: a draft, all rows of the head and {costs['draft_rows']}",
            "ms",
            costs["draft_whole_head"],
            costs["draft"],
        ),
        *(
            row(f"a copy over plain, {text}", "×", None, length * plain / looked_up)
            for text, length in LOOKED_UP.items()
        ),
        row("host waits a round", "", 2, found["syncs"], "1"),
        row("bytes to the host a round", "", None, found["bytes_to_host"], "≤ 4096"),
        row("GPU sampling verify over greedy", "×", None, found["gpu_sample_ms"] / whole, "≤ 1.1"),
        row("host sampling verify over greedy", "×", None, found["host_sample_ms"] / whole),
        *(
            row(f"the governor on {text}: {what}", "×", None, figures[key], wanted)
            for text, figures in found["texts"].items()
            for key, what, wanted in (
                ("answer", "600 tokens over plain", "≥ 0.97"),
                ("window", "their worst 200 over plain", "≥ 0.9"),
                (
                    "share",
                    "from token 64 on over the best fixed width",
                    f"≥ {figures['asked']:g}",
                ),
            )
        ),
        *(
            row(f"a presence penalty over none, {way}", "×", None, with_it / without, "≤ 1.1")
            for way, with_it, without in zip(
                ("greedy", "GPU sampling", "host sampling"),
                found["penalised_ms"],
                (whole, found["gpu_sample_ms"], found["host_sample_ms"]),
                strict=True,
            )
        ),
    ]
