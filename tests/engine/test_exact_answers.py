"""Drafted answers are plain answers, token for token, in each type of weights; a few of what
`dev.py exact` compares."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engine import Backend

from .conftest import BACKEND
from .exact_answers import compared, demo_pair, heldout_chats, spread

PROMPTS, TOKENS = (3, 64) if BACKEND is Backend.CPU else (1, 24)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pairs")


@pytest.mark.parametrize("weights", ["f32", "bf16", "q8_0", "q4_k_m"])
@pytest.mark.usefixtures("_named_backend")
def test_drafted_text_is_plain_text(weights: str, folder: Path) -> None:
    files, chats = demo_pair(weights, folder), spread(heldout_chats(), PROMPTS)
    found = compared(files, BACKEND, chats, TOKENS, threads=1)
    if BACKEND is Backend.CPU:
        assert found.exact
    elif not found.exact:
        pytest.skip(f"not exact on {found.device}")
    assert found.parted == ()
    assert found.rounds < PROMPTS * TOKENS / 2  # most tokens were drafted


def test_the_held_out_prompts_are_all_there() -> None:
    chats = heldout_chats()
    assert len(chats) >= 121
    assert all(len(turns) % 2 == 1 for turns in chats)
    assert len(set(spread(chats, 7))) == 7
