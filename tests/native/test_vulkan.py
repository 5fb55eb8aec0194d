"""The Vulkan shaders on Mesa's software renderer: the op, the rewind, and whole answers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slipstream_build import shaders, upstream, vulkan
from tests.conftest import ROOT
from tests.native.conftest import RunProgram

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_the_op_computes_what_the_cpu_does(program: RunProgram, lavapipe: dict[str, str]) -> None:
    arguments = ("-b", "Vulkan0", "-o", "GATED_DELTA_NET_TRACE")
    shown = program("test-backend-ops", *arguments, **lavapipe)
    [passed, of] = re.findall(r"(\d+)/(\d+) tests passed", shown)[0]
    assert passed == of != "0"


def test_every_way_to_run_the_gated_delta_net_agrees(
    program: RunProgram, lavapipe: dict[str, str]
) -> None:
    shown = program("test-gdn-chunked", "--quick", "Vulkan0", **lavapipe)
    assert "llvmpipe" in shown
    assert shown.splitlines()[-1] == "all passed"


def test_what_was_taken_back_was_never_there(lavapipe: dict[str, str]) -> None:
    engine_test("test_rewind.py::test_logits_of_every_round_equal_a_cold_run", lavapipe)


def test_drafting_changes_no_text(lavapipe: dict[str, str]) -> None:
    """Without the fused shaders, whose workgroups take a software renderer twice as long; the
    test above runs with them."""
    unfused = {"GGML_VK_DISABLE_FUSION": "1"}
    engine_test("test_lossless.py::test_drafting_changes_no_text", lavapipe | unfused, passed=3)


def test_a_row_has_the_same_bits_whatever_stands_beside_it(
    program: RunProgram, lavapipe: dict[str, str]
) -> None:
    """Products, attention, norms and gates one by one, with weights that the demo does not have;
    some widths only, because each number of columns is a shader to compile."""
    quick = ("--quick", "--no-models", "--types", "q8_0,q4_K", "--contexts", "600")
    shown = program("test-exact", "--device", "Vulkan0", *quick, **lavapipe)
    assert shown.count("the same bits for 1 to 32 rows, 4 widths") == 11


def test_target_and_drafter_on_different_devices(lavapipe: dict[str, str]) -> None:
    engine_test("test_two_devices.py", lavapipe, passed=3)


def test_layers_that_do_not_fit_are_the_processors(lavapipe: dict[str, str]) -> None:
    engine_test("test_partly.py", lavapipe, passed=2)


def test_the_shaders_know_what_their_compiler_does(lavapipe: dict[str, str]) -> None:
    """Integer dot products and cooperative matrices, by names of what is compiled with them only:
    all of it by Debian 13's compiler, which is taken unless it cannot be had."""
    library = Path(lavapipe["GGML_BACKEND_PATH"]).read_bytes()
    signs = {
        "integer_dot": b"matmul_q4_0_q8_1_data",
        "coopmat": b"_cm1_data",
        "coopmat2": b"_cm2_data",
    }
    folder = vulkan._feature_tests(upstream.load())
    compiler = shaders.compiler(folder)
    known = shaders.features(compiler, folder)
    assert {name for name, sign in signs.items() if sign in library} == known & signs.keys()
    assert known >= shaders.WANTED or compiler == Path(shutil.which("glslc") or "")


def test_a_draft_of_few_rows_is_the_whole_heads(lavapipe: dict[str, str]) -> None:
    test = "test_what_is_in_the_set_is_drafted_as_by_the_whole_head[f32]"
    engine_test(f"test_draft_vocabulary.py::{test}", lavapipe)


def test_penalties_are_counted_in_the_graph(lavapipe: dict[str, str]) -> None:
    test = "test_penalties.py::test_each_row_is_penalised_for_the_tokens_before_it"
    engine_test(test, lavapipe, passed=54)


def test_a_row_that_holds_what_is_no_number_is_seen_in_the_graph(lavapipe: dict[str, str]) -> None:
    test = "test_non_finite.py"
    of = "any_share or minus_infinity or one_logit or row_within_a_round"
    engine_test(test, lavapipe, "-k", of, passed=55)


@pytest.mark.parametrize("lacks", ["driver", "libvulkan", "the library"])
def test_a_machine_that_lacks_something_has_no_such_device(
    program: RunProgram, lavapipe: dict[str, str], lacks: str, tmp_path: Path
) -> None:
    """The rest works as if the backend were not there."""
    copy = tmp_path / "libggml-vulkan.so"
    env = lavapipe | {"GGML_BACKEND_PATH": str(copy)}
    if lacks != "the library":
        library = Path(lavapipe["GGML_BACKEND_PATH"]).read_bytes()
        other = b"libvulkan.so.0" if lacks == "libvulkan" else b"libvulkan.so.1"
        copy.write_bytes(library.replace(b"libvulkan.so.1", other))
    if lacks == "driver":
        env["VK_ICD_FILENAMES"] = env["VK_DRIVER_FILES"] = "/nonexistent"
    shown = program("llama-bench", "--list-devices", **env)
    assert "libggml-vulkan" in shown  # it was tried
    assert shown.rstrip().endswith("(none)")


def engine_test(test: str, env: dict[str, str], *options: str, passed: int = 1) -> None:
    """In a process of its own: a backend once loaded stays for all tests that follow."""
    patience = ("-o", "timeout=1500")  # shaders are compiled for minutes on a busy machine
    command = [sys.executable, "-m", "pytest", "-q", *patience, f"tests/engine/{test}", *options]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **env, "SLIPSTREAM_TEST_BACKEND": "gpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert f"{passed} passed" in done.stdout
