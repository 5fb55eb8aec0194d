"""Damaged models, each opened and asked in a process of its own: `dev.py fuzz`.

A try ends with an answer or with an error of `app.errors`. Anything else is a fault: another
exception, a signal, more than so much time or memory. Faults are told by the number of the try,
which makes the same files again: `python -m tests.engine.fuzz --from 4711 --times 1 --keep DIR`.

DESIGN: a process with everything imported and the library loaded forks for each try, which takes
milliseconds. It has one thread, or what is forked would lack the others. There is one of these
for each core; each does its share of the numbers and writes a line of JSON about each try.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tests.engine.damage import KINDS, Image, damaged

CPU_SECONDS: Final = 20  # of a try: whole ones take a twentieth
WALL_SECONDS: Final = 240.0  # the same, where it sleeps; on a busy machine too
MEMORY: Final = 1 << 30  # bytes beside what is there before

CORES: Final = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
WORKERS: Final = min(8, CORES)

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Try:
    """How one ended: `outcome` is "answered", the name of a typed error, or begins with "!"."""

    seed: int
    kinds: tuple[str, ...]
    which: str
    outcome: str
    detail: str
    seconds: float

    @property
    def fault(self) -> bool:
        return self.outcome.startswith("!")

    def __str__(self) -> str:
        return f"{self.seed} {self.which} {'+'.join(self.kinds)}: {self.outcome} {self.detail}"


def make_pairs(folder: Path) -> None:
    """Tiny whole pairs, `target-TYPE.gguf` and `draft-TYPE.gguf`, that the damage is done to."""
    from app.convert import WeightType, convert_draft, convert_target
    from tests.convert import tiny

    size: dict[str, Any] = {"hidden": 32, "ff": 32, "heads": 2, "kv_heads": 1, "vocab": 269}
    linear = {"key_heads": 1, "value_heads": 2, "linear_dim": 16}
    target = tiny.write_target(folder / "target", tiny.Target(**size, **linear))
    draft = tiny.write_draft(folder / "draft", tiny.Draft(**size, layers=2, taps=(0, 1), mask=268))
    for kind in (WeightType.F32, WeightType.Q8_0):
        convert_target(target, folder / f"target-{kind.value}.gguf", kind)
        convert_draft(draft, target, folder / f"draft-{kind.value}.gguf", kind)


def tries(
    folder: Path, first: int, times: int, workers: int, keep: Path | None = None
) -> Iterator[Try]:
    """Of the pairs in `folder`, by numbers from `first` on, in whatever order they end.

    The files of the last one stay in `keep`, where one worker makes all of them.
    """
    command = [sys.executable, "-m", "tests.engine.fuzz", "--pairs", str(folder)]
    if keep:
        command += ["--keep", str(keep)]
        workers = 1
    # No search for a debugger when one aborts; no threads of numpy.
    environment = {**os.environ, "GGML_NO_BACKTRACE": "1", "OPENBLAS_NUM_THREADS": "1"}
    running = []
    for i in range(workers):
        own = ["--from", str(first + i), "--times", str(times - i), "--share", str(workers)]
        running.append(
            subprocess.Popen(
                [*command, *own], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
            )
        )
    try:
        waiting = {process.stdout: process for process in running if process.stdout}
        while waiting:
            for stream in select.select([*waiting], [], [])[0]:
                line = stream.readline()
                if line:
                    made = json.loads(line)
                    yield Try(**{**made, "kinds": tuple(made["kinds"])})
                elif status := waiting.pop(stream).wait():
                    raise RuntimeError(f"what makes the tries ended with {status}")
    finally:
        for process in running:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


# --- the process that forks --------------------------------------------------------------


def serve(folder: Path, numbers: Sequence[int], keep: Path | None) -> None:
    import app.engine.pair as module
    from app.binding.registered import registered
    from app.engine import sandbox

    pairs = [
        (Image.read(target), Image.read(target.with_name(f"draft-{target.name[7:]}")))
        for target in sorted(folder.glob("target-*.gguf"))
    ]
    sandbox._SECONDS = 0.2  # type: ignore[misc]  # of a template that does not end
    module.devices = registered  # type: ignore[attr-defined]  # a driver has threads
    registered()
    threads = len(list(Path("/proc/self/task").iterdir()))
    assert threads == 1, f"what is forked would lack {threads - 1} threads"
    with tempfile.TemporaryDirectory() as temporary:
        for seed in numbers:
            made = damaged(seed, pairs)
            place = keep or Path(temporary)
            files = [place / "model.gguf", place / "other.gguf"]
            for file, data in zip(files, (made.target, made.draft), strict=True):
                file.unlink(missing_ok=True)
                if data is not None:
                    file.write_bytes(data)
            start = time.perf_counter()
            outcome, detail = forked(files[0], files[1] if made.draft else None, seed)
            seconds = round(time.perf_counter() - start, 3)
            done = Try(seed, made.kinds, made.which, outcome, detail, seconds)
            print(json.dumps(asdict(done)), flush=True)


def forked(target: Path, draft: Path | None, seed: int) -> tuple[str, str]:
    ours, theirs = os.pipe()
    said = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
    child = os.fork()
    if child == 0:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        try:
            bounded()
            told = opened(target, draft, seed)
        except BaseException as error:
            told = f"!{type(error).__name__}", trace_of(error)
        os.write(theirs, json.dumps(told).encode()[:60_000])
        os._exit(0)
    os.close(theirs)
    told, until = b"", time.monotonic() + WALL_SECONDS
    while select.select([ours], [], [], max(0.0, until - time.monotonic()))[0]:
        piece = os.read(ours, 65_536)
        if not piece:
            break
        told += piece
    else:
        os.kill(child, signal.SIGKILL)
    os.close(ours)
    _, status = os.waitpid(child, 0)
    said.seek(0)
    last = said.read()[-2000:].decode("utf-8", "replace").strip()
    said.close()
    if told:
        outcome, detail = json.loads(told)
        return outcome, detail
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        late = {"SIGXCPU": "!time", "SIGKILL": "!time"}
        return late.get(name, f"!{name}"), last
    return f"!exit {os.waitstatus_to_exitcode(status)}", last


def bounded() -> None:
    """Of the process that tries: how much memory and processor it may have."""
    import resource  # here: Windows has none, and collects this file all the same

    def limit(which: int, most: int) -> None:
        _, hard = resource.getrlimit(which)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (bound, hard))

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit(resource.RLIMIT_AS, pages * resource.getpagesize() + MEMORY)
    limit(resource.RLIMIT_CPU, CPU_SECONDS)
    limit(resource.RLIMIT_CORE, 0)


def trace_of(error: BaseException) -> str:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return f"{error} at " + " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[::-1])


def opened(target: Path, draft: Path | None, seed: int) -> tuple[str, str]:
    """What the app does with a model: looks at it, loads it and asks. (outcome, its text)"""
    from app.binding import NativeVocabulary, estimate
    from app.binding.sampling import Verify
    from app.conversation import ChatMessage, Role
    from app.engine.messages import Finished
    from app.engine.pair import LoadedPair
    from app.engine.params import AskParams, Backend, LoadParams, Sampling
    from app.errors import SlipstreamError
    from app.model_folder import find_pair

    chat = (ChatMessage(Role.USER, "hello <think> 12"),)
    outcomes: list[tuple[str, str]] = []

    def attempt(name: str, what: Any) -> None:
        try:
            what()
            outcomes.append(("answered", name))
        except SlipstreamError as error:
            whole = error.message and error.remedy
            outcomes.append((type(error).__name__ if whole else "!bare", f"{name}: {error}"))

    def vocabulary() -> None:
        with NativeVocabulary(target) as opened:
            opened.tokenize("hello <|im_end|> 12\n\u00e9\0")
            opened.is_end(3)

    def asked() -> None:
        loaded = LoadedPair(LoadParams(target, draft, Backend.CPU, n_ctx=256, threads=1))
        try:
            for verify in (Verify.GREEDY, list(Verify)[seed % 3]):
                params = AskParams(
                    max_tokens=6, block=4, verify=verify, sampling=Sampling(seed=1), think=False
                )
                for event in loaded.answer(1, chat, params):
                    assert not isinstance(event, Finished) or event.answer.token_ids
        finally:
            loaded.close()

    if seed % 4 == 0:
        attempt("find", lambda: find_pair(target.parent))
        attempt("vocabulary", vocabulary)
        attempt("estimate", lambda: estimate(target, draft, n_ctx=256))
    attempt("ask", asked)
    return next((told for told in outcomes if told[0].startswith("!")), outcomes[-1])


# --- the command ---------------------------------------------------------------------------


def report(done: Sequence[Try]) -> str:
    """A line for each kind that was tried by itself, and one for all."""
    rows = [(kind, [made for made in done if made.kinds == (kind,)]) for kind in KINDS]
    lines = []
    for name, of in (*rows, ("all", done)):
        told = Counter(made.outcome for made in of).most_common()
        lines.append(f"{name:16}{len(of):6}  {', '.join(f'{n} {o}' for o, n in told)}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20_000, help="how many tries (20,000)")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first number (0)")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--keep", type=Path, help="a folder that the files of the last stay in")
    parser.add_argument("--pairs", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--share", type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.keep:
        given.keep = given.keep.resolve()
        given.keep.mkdir(parents=True, exist_ok=True)
    if given.pairs and given.share:
        serve(given.pairs, range(given.first, given.first + given.times, given.share), given.keep)
        return 0
    done: list[Try] = []
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        make_pairs(Path(folder))
        for made in tries(Path(folder), given.first, given.times, given.workers, given.keep):
            done.append(made)
            if made.fault:
                print(made, flush=True)
            if len(done) % 500 == 0:
                print(f"{len(done)} tries, {time.monotonic() - start:.0f} s", flush=True)
    print(report(done))
    faults = [made for made in done if made.fault]
    print(f"{len(faults)} of {len(done)} are faults, {time.monotonic() - start:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
