"""A job that is killed, again and again: `python -m tests.job.killed [--times 20] [--seed N]`.

Each run is a process of its own, killed with SIGKILL after a time by chance, with all its
children going too; the one after the last is left to finish. Its files must have the digests
of a run that nobody disturbed, and nothing may be left behind.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.job import Job, State, Step, Tools
from app.job.journal import FOLDER, Journal
from app.jobs import CancelToken
from app.passport import Check, Passport
from tests import hub as faults
from tests.hub import Hub, running
from tests.job.conftest import DEMO, MODEL


def checks(folder: Path, progress: object, cancel: CancelToken) -> Sequence[Check]:
    """In place of the engine: long enough to be killed in."""
    passport = Passport.read(folder)
    assert passport is not None
    passport.verify(folder)
    time.sleep(0.2)
    return [Check("files", True, "")]


def child(root: Path) -> None:
    """Do what is left of the job, telling each step."""

    def show(state: State) -> None:
        print(state.step.value, flush=True)

    Job.start(root, MODEL, Tools(check=checks, margin=0)).run(show)


@dataclass
class Killed:
    step: Step | None  # that the journal was at; None where there was none yet
    after: float


def start(root: Path, home: Path, hub: Hub) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "HF_HOME": str(home),
        "HF_ENDPOINT": hub.endpoint,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "tests.job.killed", "--child", str(root)],
        env=environment,
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(root: Path, home: Path, hub: Hub) -> tuple[float, dict[str, str]]:
    """Seconds, and the digest of each file by role."""
    began = time.monotonic()
    process = start(root, home, hub)
    process.communicate()
    assert process.returncode == 0
    passport = Passport.read(root / MODEL.id)
    assert passport is not None
    passport.verify(root / MODEL.id)
    return time.monotonic() - began, {r: made.sha256 for r, made in passport.files.items()}


def kill_once(root: Path, home: Path, hub: Hub, chance: random.Random, longest: float) -> Killed:
    process = start(root, home, hub)
    assert process.stdout is not None
    process.stdout.readline()  # it has begun
    after = chance.uniform(0.0, longest)
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    journal = Journal.read(root / FOLDER / MODEL.id)
    step = journal.step if journal else None
    # Whatever moment it was: what has its final name is whole.
    if (root / MODEL.id).exists():
        passport = Passport.read(root / MODEL.id)
        assert passport is not None
        passport.verify(root / MODEL.id)
    return Killed(step, after)


def torture(
    folder: Path, times: int, seed: int, tell: Callable[[Killed], None] = lambda _: None
) -> list[Killed]:
    """Raises `AssertionError` where anything is not as it should be."""
    chance = random.Random(seed)
    assert MODEL.target is not None
    assert MODEL.draft is not None
    with running() as hub:
        hub.add(MODEL.target.repo, DEMO / "target")
        hub.add(MODEL.draft.repo, DEMO / "draft")
        hub.always["model.safetensors"] = faults.slowly(12_000_000)
        seconds, wanted = finish(folder / "undisturbed", folder / "hf-undisturbed", hub)
        root, home = folder / "models", folder / "hf"
        seen = []
        for _ in range(times):
            if (root / MODEL.id).exists() and not (root / FOLDER / MODEL.id).exists():
                shutil.rmtree(root / MODEL.id)  # it was faster than the kill: once more
            seen.append(kill_once(root, home, hub, chance, seconds * 0.8))
            tell(seen[-1])
        if not (root / MODEL.id).exists() or (root / FOLDER / MODEL.id).exists():
            finish(root, home, hub)
        passport = Passport.read(root / MODEL.id)
        assert passport is not None
        found = {role: made.sha256 for role, made in passport.files.items()}
        assert found == wanted, (found, wanted)
        passport.verify(root / MODEL.id)
        names = sorted(f.name for f in (root / MODEL.id).iterdir())
        assert names == ["draft-q8_0.gguf", "passport.json", "target-q8_0.gguf"], names
        assert not (root / FOLDER / MODEL.id).exists()
        assert not list(home.rglob("*.incomplete"))
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child)
        return 0
    print(f"seed {args.seed}", flush=True)

    def tell(one: Killed) -> None:
        step = one.step.value if one.step else "-"
        print(f"killed after {one.after:5.2f} s, journal at: {step}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        torture(Path(folder), args.times, args.seed, tell)
    print("finished each time; digests equal, nothing left behind")
    return 0


if __name__ == "__main__":
    sys.exit(main())
