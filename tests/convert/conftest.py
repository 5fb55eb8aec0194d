"""The tree's own converter as an oracle, and checkpoints made once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.convert import tiny
from tests.convert.cases import CASES, Case


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of all cases by name."""
    root = tmp_path_factory.mktemp("checkpoints")
    return {case.name: case.make(root / case.name) for case in CASES}


@pytest.fixture(scope="session")
def oracle_files(
    llama_source: Path, sources: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """What the tree's converter writes for each case, made in one process."""
    out = tmp_path_factory.mktemp("oracle")
    files = {case.name: out / f"{case.name}.gguf" for case in CASES}
    jobs = [_arguments(case, sources, files[case.name]) for case in CASES]
    (out / "jobs.json").write_text(json.dumps(jobs), "utf-8")
    script = Path(__file__).with_name("oracle.py")
    done = subprocess.run(
        [sys.executable, str(script), str(llama_source), str(out / "jobs.json")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )
    if done.returncode:
        pytest.fail(f"the oracle failed:\n{done.stderr[-3000:]}")
    return files


def _arguments(case: Case, sources: dict[str, Path], output: Path) -> list[str]:
    pair = ["--target-model-dir", str(sources[case.target])] if case.target else ["--no-mtp"]
    return [
        str(sources[case.name]),
        "--outtype",
        case.weight_type.value,
        "--outfile",
        str(output),
        *pair,
    ]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A target checkpoint to be spoilt."""
    return tiny.write_target(tmp_path / "target")


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    """A drafter checkpoint for `target` to be spoilt."""
    return tiny.write_draft(tmp_path / "draft")
