"""`python3 dev.py bench native`: the unpatched tree against ours, measured in one run.

Without a pair of GGUF files only what needs no model. To add a row, let a module here measure
both sides in turns and return `Row`s. Standard library only: it runs on any machine that has
the binaries.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import busy
import card
import rewind
import rounds
import server_bench
from rows import progress, table


def main() -> None:
    parser = argparse.ArgumentParser(prog="dev.py bench native", description=__doc__)
    parser.add_argument("--json", action="store_true", help="a list of rows instead of a table")
    parser.add_argument("--ours", type=Path, required=True, help="folder of our programs (built)")
    parser.add_argument("--base", type=Path, help="the same of the unpatched tree (built)")
    parser.add_argument("--pair", type=Path, nargs=2, metavar=("TARGET", "DRAFT"), help="GGUF")
    parser.add_argument("--device", default="CPU", help="of the engine: CPU, CUDA0, Vulkan0 (CPU)")
    parser.add_argument("--threads", type=int, help="on the CPU (2, or the cores if fewer)")
    parser.add_argument("--passes", type=int, default=100, help="over a layer (100)")
    parser.add_argument("--rounds", type=int, default=40, help="of each kind, five times (40)")
    parser.add_argument("--runs", type=int, default=5, help="requests to each server (5)")
    parser.add_argument("--tokens", type=int, default=256, help="in each answer (256)")
    parser.add_argument("--length", type=float, default=6, help="synthetic mean accepted length")
    parser.add_argument(
        "--only", choices=("layers", "server", "rounds", "busy", "card"), help="these rows alone"
    )
    parser.add_argument("--texts", action="store_true", help="the governor on nine texts, minutes")
    parser.add_argument(
        "--cores", type=lambda text: {int(core) for core in text.split(",")}, help="0,1: on Linux"
    )
    parser.add_argument("server", nargs="*", help="after --: more arguments for llama-server")
    options = parser.parse_args()
    if options.pair and not options.base:
        parser.error("--pair needs --base")

    if options.cores:
        os.sched_setaffinity(0, options.cores)
    options.threads = options.threads or min(2, len(options.cores or (0, 1)))

    def wants(what: str) -> bool:
        return options.only in (None, what) and (what == "layers" or options.pair is not None)

    rows = rewind.measure(options) if wants("layers") else []
    server = server_bench.measure(options) if wants("server") else []
    rows += server
    rows += rounds.measure(options, server) if wants("rounds") else []
    rows += busy.measure(options) if wants("busy") and options.device == "CPU" else []
    # Hours on a renderer that is software: there by name alone.
    on_card = options.device.startswith("CUDA") or options.only == "card"
    rows += card.measure(options) if wants("card") and on_card else []
    if not options.pair:
        progress("no --pair: rounds of llama-server are not measured")
    print(json.dumps([row.json() for row in rows], indent=1) if options.json else table(rows))


if __name__ == "__main__":
    main()
