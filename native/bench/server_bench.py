"""Times a llama-server at synthetic acceptance, and says how much device memory it takes.

    python3 native/bench/server_bench.py --ours BIN_DIR --base BIN_DIR \\
        --target target.gguf --draft draft.gguf [--device-memory] [-- server arguments]

For each of the two builds, in turns: plain decoding, then DFlash rounds. Prints a JSON list of
{name, unit, base, ours, ratio, machine}, medians over the runs. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PORT = 8765


def ask(n_predict: int, run: int) -> dict[str, float]:
    body = {
        "prompt": "word " * 300 + str(run),
        "n_predict": n_predict,
        "temperature": 0,
        "ignore_eos": True,
        "cache_prompt": False,
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/completion",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=600) as reply:
        timings: dict[str, float] = json.load(reply)["timings"]
    return timings


def device_memory() -> float:
    """MiB in use on the first NVIDIA device."""
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"]
    return float(subprocess.run(query, capture_output=True, text=True, check=True).stdout)


def machine() -> str:
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader", "-i", "0"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        info = Path("/proc/cpuinfo")
        text = info.read_text() if info.exists() else ""
        names = [
            line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line
        ]
        return names[0] if names else platform.processor()


def measure(binary: Path, arguments: list[str], options: argparse.Namespace) -> dict[str, float]:
    before = device_memory() if options.device_memory else 0.0
    command = [str(binary / "llama-server"), "--host", "127.0.0.1", "--port", str(PORT)]
    command += ["-c", "4096", "-np", "1", *arguments]
    log = Path(options.log).open("w")  # noqa: SIM115 - lives as long as the server
    server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(600):
            if server.poll() is not None:
                sys.exit(f"llama-server ended with {server.returncode}, see {options.log}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=1).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        ask(32, 99)  # warm
        runs = [ask(options.tokens, run) for run in range(options.runs)]
        memory = device_memory() - before if options.device_memory else 0.0
    finally:
        server.terminate()
        server.wait()
        log.close()
    per_round = []
    for timings in runs:
        rounds = timings["predicted_n"] - timings.get("draft_n_accepted", 0)
        per_round.append(timings["predicted_ms"] / rounds)
    return {
        "tokens_per_s": statistics.median(t["predicted_per_second"] for t in runs),
        "ms_per_round": statistics.median(per_round),
        "device_mib": memory,
    }


def rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    plain = ["-m", str(options.target), *options.arguments]
    dflash = [*plain, "-md", str(options.draft), "--spec-type", "draft-dflash"]
    dflash += ["--spec-draft-n-max", "15", "--spec-synth-len", str(options.length)]
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for name, arguments in (("plain", plain), ("dflash", dflash)):
        for side in ("base", "ours"):
            figures.setdefault(name, {})[side] = measure(getattr(options, side), arguments, options)
            print(name, side, figures[name][side], file=sys.stderr, flush=True)

    def row(name: str, unit: str, base: float, ours: float) -> dict[str, Any]:
        ratio = ours / base if base else None
        return {
            "name": name,
            "unit": unit,
            "base": round(base, 3),
            "ours": round(ours, 3),
            "ratio": round(ratio, 3) if ratio is not None else None,
            "machine": machine(),
        }

    def both(kind: str, key: str) -> tuple[float, float]:
        return figures[kind]["base"][key], figures[kind]["ours"][key]

    length = f"mean accepted length {options.length}"
    out = [
        row("server, plain", "tokens/s", *both("plain", "tokens_per_s")),
        row(f"server, DFlash, {length}", "tokens/s", *both("dflash", "tokens_per_s")),
        row(f"server, DFlash, {length}", "ms a round", *both("dflash", "ms_per_round")),
    ]
    if options.device_memory:
        more = [
            figures["dflash"][s]["device_mib"] - figures["plain"][s]["device_mib"]
            for s in ("base", "ours")
        ]
        out.append(row("device memory of DFlash over plain", "MiB", *more))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ours", type=Path, required=True)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", type=Path, required=True)
    parser.add_argument("--length", type=float, default=6)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device-memory", action="store_true")
    parser.add_argument("--log", default="llama-server.log")
    parser.add_argument("arguments", nargs="*")
    json.dump(rows(parser.parse_args()), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
