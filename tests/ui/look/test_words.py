"""Figures as people read them."""

from __future__ import annotations

import pytest

from app.ui.look import words


@pytest.mark.parametrize(
    ("octets", "told"),
    [(8_000_000, "8 MB"), (42_400_000, "42 MB"), (99_000_000, "99 MB"), (2_740_000_000, "2.7 GB")],
)
def test_a_size_is_told_in_its_own_unit(octets: int, told: str) -> None:
    assert words.size(octets) == told


def test_how_long_it_thought() -> None:
    assert words.thought(200) == "thought for a moment"
    assert words.thought(3_400) == "thought for 3 s"
    assert words.thought(3_400, ongoing=True) == "thinking for 3 s"
