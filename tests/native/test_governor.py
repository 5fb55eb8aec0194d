"""The governor by itself, on simulated texts and devices."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"


def test_it_is_never_far_behind_plain_decoding_nor_the_best_width(tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not compiler:
        pytest.skip("there is no C++ compiler")
    program = tmp_path / "test-governor"
    sources = [NATIVE / "tests" / "test-governor.cpp", NATIVE / "src" / "governor.cpp"]
    include = [f"-I{NATIVE / folder}" for folder in ("include", "src")]
    subprocess.run([compiler, "-std=c++17", "-O2", *include, *sources, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
