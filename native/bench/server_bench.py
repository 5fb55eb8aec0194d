"""llama-server of both trees: plain decoding, and DFlash rounds at synthetic acceptance.

Both servers of a kind run at the same time and are asked in turns, so that what else the
machine does falls on both sides alike; one that is not asked costs nothing.
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rows import Row, device_memory, gpu, processor, progress

SIDES = ("base", "ours")
PLAIN, ROUND = "llama-server, plain", "llama-server, a round"
START_S = 180


@dataclass
class Measured:
    tokens_per_s: list[float] = field(default_factory=list)
    ms_per_round: list[float] = field(default_factory=list)
    device_mib: float = 0.0


def measure(options: Namespace) -> list[Row]:
    target, draft = options.pair
    plain = ["-m", str(target), "-t", str(options.threads), *options.server]
    dflash = [*plain, "-md", str(draft), "--spec-type", "draft-dflash", "--spec-draft-n-max", "15"]
    dflash += ["--spec-synth-len", str(options.length)]
    without, with_draft = _both(plain, options), _both(dflash, options)

    card = _card(options.ours)
    machine = card or f"{processor()}, {options.threads} threads"
    plain_speed = _medians(without, "tokens_per_s")
    rounds = _medians(with_draft, "ms_per_round")
    # What is accepted is drawn at random around the length asked for, so not every answer has it.
    drafted_speed = (options.length * 1000 / rounds[0], options.length * 1000 / rounds[1])
    in_tokens = (rounds[0] * plain_speed[0] / 1000, rounds[1] * plain_speed[1] / 1000)
    gain = (drafted_speed[0] / plain_speed[0], drafted_speed[1] / plain_speed[1])
    at = f"mean accepted length {options.length:g}"
    on_card = bool(card)
    out = [
        Row(PLAIN, "tokens/s", *plain_speed, machine),
        Row(ROUND, "ms", *rounds, machine, "ratio ≤ 0.4" if on_card else ""),
        Row("a round in plain tokens", "tokens", *in_tokens, machine, "≤ 1.5" if on_card else ""),
        Row(f"llama-server, DFlash, {at}", "tokens/s", *drafted_speed, machine),
        Row("the same over plain", "×", *gain, machine, "≥ 4" if on_card else ""),
    ]
    if card:
        base, ours = (with_draft[side].device_mib - without[side].device_mib for side in SIDES)
        name = "device memory of DFlash over plain, llama-server"
        out.append(Row(name, "MiB", base, ours, machine, "≤ 1434 MiB"))
    return out


def _card(binaries: Path) -> str | None:
    """The card that these servers use by themselves; a CPU build on such a machine uses none."""
    command = [str(binaries / "llama-server"), "--list-devices"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return gpu() if "CUDA" in done.stdout + done.stderr else None


def _medians(measured: dict[str, Measured], figure: str) -> tuple[float, float]:
    base, ours = (statistics.median(getattr(measured[side], figure)) for side in SIDES)
    return base, ours


def _both(arguments: list[str], options: Namespace) -> dict[str, Measured]:
    out = {side: Measured() for side in SIDES}
    ports = {}
    with ExitStack() as running:
        for side in SIDES:
            before = device_memory() if gpu() else 0.0
            binary = getattr(options, side) / "llama-server"
            ports[side] = running.enter_context(_server(binary, arguments))
            _ask(ports[side], 32, "warm")
            out[side].device_mib = device_memory() - before if gpu() else 0.0
        for run in range(options.runs):
            for side in SIDES:
                timings = _ask(ports[side], options.tokens, run)
                rounds = timings["predicted_n"] - timings.get("draft_n_accepted", 0)
                out[side].tokens_per_s.append(timings["predicted_per_second"])
                out[side].ms_per_round.append(timings["predicted_ms"] / rounds)
    for side in SIDES:
        progress(f"{side}: {out[side]}")
    return out


@contextmanager
def _server(binary: Path, arguments: list[str]) -> Iterator[int]:
    """A server that answers; gives its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [str(binary), "--host", "127.0.0.1", "--port", str(port), "-c", "4096", "-np", "1"]
    progress(" ".join([*command, *arguments]))
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen([*command, *arguments], stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_for(server, port)
            yield port
        except (OSError, TimeoutError):
            log.seek(0)
            sys.exit(f"{log.read()[-3000:]}\nllama-server did not answer, its last words above")
        finally:
            server.terminate()
            server.wait()


def _wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_S
    while server.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise TimeoutError


def _ask(port: int, n_predict: int, run: object) -> dict[str, float]:
    body = {
        "prompt": f"{'word ' * 300}{run}",
        "n_predict": n_predict,
        "temperature": 0,  # and no bias, as to ignore the end: that takes the choice to the host
        "cache_prompt": False,
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/completion",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=600) as reply:
        timings: dict[str, float] = json.load(reply)["timings"]
    if timings["predicted_n"] < n_predict:
        progress(f"an answer ended after {timings['predicted_n']} of {n_predict} tokens")
    return timings
