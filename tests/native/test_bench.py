"""`dev.py bench native`: the form of its rows, and the figures that follow from shapes alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

BENCH = ROOT / "native" / "bench"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def run(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_rows(tools: Path) -> None:
    done = run("--ours", tools, "--passes", 5, "--json")
    assert done.returncode == 0, done.stderr
    memory, written, *layers = json.loads(done.stdout)
    for row in (memory, written, *layers):
        assert list(row) == "name unit base ours ratio machine".split()
        assert row["ratio"] == pytest.approx(row["ours"] / row["base"], rel=1e-3)
    assert layers
    # Qwen3.5-4B, a block of 16: what the base needs, and what we promised
    assert (memory["base"], memory["unit"]) == (804, "MiB")
    assert memory["ours"] <= 80
    assert written["base"] == 768
    assert written["ours"] <= 60


def test_a_table_for_people(tools: Path) -> None:
    lines = run("--ours", tools, "--passes", 5).stdout.splitlines()
    assert lines[0].startswith("| what ")
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize("args", [[], ["--ours", "x", "--pair", "a", "b"]])
def test_a_side_without_binaries_is_wrong_use(args: list[str]) -> None:
    assert run(*args).returncode == 2
