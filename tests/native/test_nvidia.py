"""What `dev.py nvidia` makes of what it is told; without a card, by the CPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.native import nvidia
from tests.native.nvidia import MIB, Lacking


def row(name: str, backend: str, card: str = "NVIDIA X", reason: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "backend": backend,
        "description": card,
        "usable": not reason,
        "reason": reason,
    }


def test_both_backends_drive_one_card() -> None:
    other = row("Vulkan0", "vulkan", card="Another")
    listed = [row("CPU", "cpu"), row("CUDA0", "cuda"), other, row("Vulkan1", "vulkan")]
    assert nvidia.of_one_card(listed) == {"cuda": "CUDA0", "vulkan": "Vulkan1"}
    with pytest.raises(Lacking, match="vulkan has not that card: Another"):
        nvidia.of_one_card(listed[:3])
    with pytest.raises(Lacking, match="cuda has not that card: No driver"):
        nvidia.of_one_card([row("CUDA0", "cuda", reason="No driver."), listed[-1]])
    with pytest.raises(Lacking, match="cuda has not that card: it is not there"):
        nvidia.of_one_card([])


def test_memory_is_that_of_all_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf '512\\n1024\\n'", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert nvidia.used() == 1536 * MIB


@pytest.mark.parametrize(("used", "right"), [(1000, True), (1105, True), (1125, False)])
def test_an_estimate_may_be_off_by_a_tenth(
    monkeypatch: pytest.MonkeyPatch, used: int, right: bool
) -> None:
    found = {"n_ctx": 512, "estimate": 1000, "used": used, "estimate_s": 1.0, "load_s": 2.0}
    monkeypatch.setattr(nvidia, "called", lambda *_: found)
    if right:
        assert "off by" in nvidia.fits("CUDA0", Path("t.gguf"), Path("d.gguf"), 512)
        return
    with pytest.raises(Lacking, match=r"off by -11\.1%"):
        nvidia.fits("CUDA0", Path("t.gguf"), Path("d.gguf"), 512)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_answers_and_speed_are_asked_of_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "QUESTIONS", nvidia.QUESTIONS[:1])
    monkeypatch.setattr(nvidia, "TOKENS", 16)
    told = nvidia.answers("CPU")
    assert "1 of 1 answers the same with and without drafter (exact: True)" in told
    assert "selftest green" in told
    assert "governor" in nvidia.speed("CPU")


def test_an_answer_that_differs_where_rows_are_exact_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def said(*args: object) -> dict[str, Any]:
        if args[0] == "selftest":
            return {"checks": [1, 2]}
        tokens = [1, 2] if "--no-draft" in args else [1, 3]
        return {"token_ids": tokens, "exact": True, "mean_accepted_length": 2.0}

    monkeypatch.setattr(nvidia, "slipstream", said)
    with pytest.raises(Lacking, match="0 of 3 answers"):
        nvidia.answers("CUDA0")
