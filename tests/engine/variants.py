"""Each CPU variant of the wheel for any processor: `python3 dev.py variants`.

Whether the selftest is green and drafted answers of the demo pair are the plain ones, token by
token; a variant that this processor cannot execute is listed as not run. A line each, status 1 if
one fails or none ran.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
NAMED: Final = "SLIPSTREAM_CPU"
PREFIX: Final = "libggml-cpu-"
CANNOT: Final = "cannot execute"  # libslipstream's words


def variants(package: Path) -> list[str]:
    """Their names, of what a wheel was unpacked to."""
    folder = package / "llama_cpp" / "lib" / "backends"
    return sorted(file.stem.removeprefix(PREFIX) for file in folder.glob(f"{PREFIX}*.so"))


def tried(package: Path, home: Path, variant: str | None, compared: Sequence[str]) -> str:
    """What is to be told of a variant, None being the one that the library chooses; begins with
    "failed" or "not run" where it is so."""
    env = {key: value for key, value in os.environ.items() if key != NAMED}
    env |= {"PYTHONPATH": str(package), "SLIPSTREAM_HOME": str(home)}
    if variant:
        env[NAMED] = variant

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", *args]
        return subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )

    done = run("app", "selftest", "--backend", "cpu", "--json")
    if CANNOT in done.stdout:
        return "not run: this processor cannot execute it"
    if done.returncode != 0:
        return f"failed: selftest: {(done.stdout or done.stderr).strip()[-1000:]}"
    checks = len(json.loads(done.stdout)["checks"])
    done = run("tests.engine.exact_answers", *compared)
    if done.returncode != 0:
        return f"failed: {(done.stdout + done.stderr).strip()[-1000:]}"
    return f"selftest green ({checks} checks); " + " | ".join(done.stdout.splitlines())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="dev.py variants")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("wheel", type=Path)
    add("--only", default="", metavar="NAMES", help="with commas between; default: all")
    add("--types", default="q8_0,q4_k_m", help="of weights; default: %(default)s")
    add("--prompts", default="3", help="default: %(default)s")
    add("--tokens", default="64", help="of each answer; default: %(default)s")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        package, home, pairs = (Path(folder, name) for name in ("package", "home", "pairs"))
        with zipfile.ZipFile(options.wheel) as archive:
            archive.extractall(package)
        compared = ["--types", options.types, "--prompts", options.prompts]
        compared += ["--tokens", options.tokens, "--pairs", str(pairs)]
        chosen = options.only.split(",") if options.only else variants(package)
        found = {}
        for variant in (None, *chosen):
            found[variant] = tried(package, home, variant, compared)
            print(f"{variant or 'the one that is chosen'}: {found[variant]}", flush=True)
    failed = any(told.startswith("failed") for told in found.values())
    return 1 if failed or all(told.startswith("not run") for told in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
