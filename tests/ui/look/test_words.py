"""Figures as people read them."""

from __future__ import annotations

import pytest

from app.engine import Speedup, Unmeasured
from app.ui.look import words


@pytest.mark.parametrize(
    ("octets", "told"),
    [(8_000_000, "8 MB"), (42_400_000, "42 MB"), (99_000_000, "99 MB"), (2_740_000_000, "2.7 GB")],
)
def test_a_size_is_told_in_its_own_unit(octets: int, told: str) -> None:
    assert words.size(octets) == told


@pytest.mark.parametrize(
    ("milliseconds", "told"),
    [
        (0.0, "0.0 ms"),
        (61.4, "61.4 ms"),
        (240.0, "240 ms"),
        (999.4, "999 ms"),
        (999.6, "1.0 s"),
        (2_000.0, "2.0 s"),
        (59_940.0, "59.9 s"),
        (59_970.0, "1 min 0 s"),
        (119_600.0, "2 min 0 s"),
        (3_725_000.0, "62 min 5 s"),
    ],
)
def test_how_long_something_took(milliseconds: float, told: str) -> None:
    assert words.duration(milliseconds) == told


@pytest.mark.parametrize("why", Unmeasured)
def test_why_no_speed_up_is_told_is_no_second_colon(why: Unmeasured) -> None:
    told = words.speedup(Speedup(None, None, why))
    assert told == f"not measured ({why.words})"
    assert ":" not in told


def test_how_long_it_thought() -> None:
    assert words.thought(200) == "thought for a moment"
    assert words.thought(3_400) == "thought for 3 s"
    assert words.thought(3_400, ongoing=True) == "thinking for 3 s"


@pytest.mark.parametrize(
    ("used", "size", "told"),
    [
        (0, 4096, "0 / 4k"),
        (999, 32_768, "999 / 32k"),
        (2_560, 32_768, "2.5k / 32k"),
        (4_095, 4_096, "3.9k / 4k"),
        (4_096, 4_096, "4k / 4k"),
        (5_000, 5_000, "5k / 5k"),
    ],
)
def test_what_is_used_of_a_context_is_told_in_its_own_thousands(
    used: int, size: int, told: str
) -> None:
    assert words.use(used, size) == told


@pytest.mark.parametrize(
    ("ways", "told"),
    [
        ((), ""),
        (("shorten it",), "Shorten it."),
        (("shorten it", "start a new chat"), "Shorten it, or start a new chat."),
        (("a", "b", "c"), "A, b, or c."),
    ],
)
def test_what_can_be_done_is_a_sentence(ways: tuple[str, ...], told: str) -> None:
    assert words.choice(*ways) == told
