"""The installed package is what design says: one copy of each library, ours among them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from slipstream_build import toolchain, tree, upstream, wheel

DIST = metadata.distribution("llama_cpp_python")
PATHS = [Path(str(file)) for file in DIST.files or []]


def test_the_version_says_whose_build_it_is() -> None:
    assert DIST.version == upstream.load().wheel_version


def test_nothing_lies_outside_the_package() -> None:
    tops = {path.parts[0] for path in PATHS}
    assert tops == {"llama_cpp", f"llama_cpp_python-{DIST.version}.dist-info"}
    assert not [path for path in PATHS if path.parts[:2] == ("llama_cpp", "server")]


@pytest.mark.skipif(sys.platform != "linux", reason="names of ELF libraries")
def test_one_copy_of_each_library() -> None:
    libraries = {path.name for path in PATHS if path.parent.name == "lib"}
    assert libraries >= {"libllama.so", "libggml.so", "libslipstream.so"}
    assert all(name.endswith(".so") for name in libraries)


@pytest.mark.skipif(sys.platform != "linux", reason="names of ELF libraries")
def test_our_library_finds_its_neighbours() -> None:
    [path] = [path for path in PATHS if path.name == "libslipstream.so"]
    assert ctypes.CDLL(str(DIST.locate_file(path))).slip_abi


def test_the_key_follows_every_input(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = wheel.content_key("gcc 12")
    assert wheel.content_key("gcc 12") == plain
    assert wheel.content_key("gcc 13") != plain
    for kind in ("library_sources", "engine_sources"):
        sources = list(getattr(tree, kind)())
        with monkeypatch.context() as patch:
            patch.setattr(tree, kind, lambda sources=sources: sources[:-1])
            assert wheel.content_key("gcc 12") != plain


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="Linux tells what a processor has")
@pytest.mark.skipif("CMAKE_ARGS" in os.environ, reason="it may be built for another processor")
def test_the_engine_is_built_for_the_processor_at_hand() -> None:
    """It was for the least of all once, and a seventh as fast, since its wheel holds no times."""
    has = Path("/proc/cpuinfo").read_text("utf-8")
    if " avx2 " not in has:
        pytest.skip("the processor has nothing to look for")
    say = "import llama_cpp; print(llama_cpp.llama_print_system_info().decode())"
    said = subprocess.run([sys.executable, "-c", say], capture_output=True, text=True, check=True)
    assert "AVX2 = 1" in said.stdout
    assert "-DGGML_NATIVE=ON" in wheel.cmake_defines("commit")
    assert "-DGGML_NATIVE=OFF" in wheel.cmake_defines("commit", wheel.PORTABLE)


def test_a_native_test_belongs_to_the_tools_and_not_to_the_wheel() -> None:
    placed = {inside for inside, _ in tree.program_sources()}
    assert "slipstream/tests/test-gdn-chunked.cpp" in placed
    assert "slipstream/bench/CMakeLists.txt" in placed
    assert not placed & {inside for inside, _ in tree.library_sources()}
    programs = [file for _, file in tree.program_sources()]
    assert wheel.content_key("gcc 12", programs) != wheel.content_key("gcc 12", programs[:-1])


def test_build_options_belong_to_the_toolchain(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = toolchain.describe()
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_VULKAN=ON")
    assert toolchain.describe() != plain
