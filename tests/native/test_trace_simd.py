"""The CPU's traced delta net on processors that are not at hand: cross-compiled, emulated."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("sve", [False, True], ids=["neon", "sve"])
def test_arm_takes_vectors_of_four_floats(tmp_path: Path, llama_source: Path, sve: bool) -> None:
    compiler, emulator = shutil.which("aarch64-linux-gnu-g++"), shutil.which("qemu-aarch64")
    if not compiler or not emulator:
        pytest.skip("needs Debian's g++-aarch64-linux-gnu and qemu-user")
    ggml = llama_source / "ggml"
    include = [f"-I{ggml / folder}" for folder in ("src/ggml-cpu", "src", "include")]
    march = "-march=armv8.2-a+fp16" + ("+sve" if sve else "")
    program = tmp_path / "test-trace-simd"
    source = ROOT / "native" / "tests" / "test-trace-simd.cpp"
    command = [compiler, "-std=c++17", "-O2", "-static", march, *include, source, "-o", program]
    subprocess.run(command, check=True)
    done = subprocess.run([emulator, "-cpu", "max", program, "4"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "largest difference" in done.stdout
