"""Parts of the library by themselves, on simulated texts and made-up machines."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("governor", ["governor", "acceptance"]),
        ("cores", ["cores", "control_groups"]),
        ("host-memory", ["host_memory", "control_groups"]),
    ],
)
def test_by_itself(tmp_path: Path, name: str, parts: list[str]) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not compiler:
        pytest.skip("there is no C++ compiler")
    program = tmp_path / name
    sources = [NATIVE / "tests" / f"test-{name}.cpp"]
    sources += [NATIVE / "src" / f"{part}.cpp" for part in parts]
    include = [f"-I{NATIVE / folder}" for folder in ("include", "src")]
    subprocess.run([compiler, "-std=c++17", "-O2", *include, *sources, "-o", program], check=True)
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run([program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout
