"""The engine on the forms that the rewound delta net takes where a device lacks our operation."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TESTS = (
    "test_rewind.py::test_what_was_rejected_leaves_no_trace",
    "test_answering.py::test_a_drafted_answer_is_the_plain_one",
    "test_answering.py::test_the_state_of_the_last_turn_is_reused",
)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param({"LLAMA_GDN_CHUNKED": "1"}, id="plain operations in chunks"),
        pytest.param({"LLAMA_GDN_TRACE": "0"}, id="fused operation and snapshots of the base"),
    ],
)
def test_drafting_and_rewinding(form: dict[str, str]) -> None:
    """In a process of its own: the form is chosen when a pair is loaded."""
    tests = [f"tests/engine/{test}" for test in TESTS]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env={**os.environ, **form},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
