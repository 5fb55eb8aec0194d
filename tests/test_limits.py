"""Ends that are in, ends that are out, and how both are said."""

from __future__ import annotations

import math

import pytest

from app import limits
from app.errors import OptionError
from app.limits import Range


@pytest.mark.parametrize(
    ("range_", "inside", "outside", "said"),
    [
        (Range(1, 3), (1, 2, 3), (0, 4, math.nan), "1 to 3"),
        (Range(0, 1, above=True), (1e-9, 1.0), (0.0, 1.1, math.nan), "above 0, up to 1"),
        (Range(0, 1, below=True), (0.0, 0.999), (1.0, math.inf), "0 to below 1"),
    ],
)
def test_ranges(
    range_: Range, inside: tuple[float, ...], outside: tuple[float, ...], said: str
) -> None:
    assert all(range_.holds(value) for value in inside)
    assert not any(range_.holds(value) for value in outside)
    assert str(range_) == said


def test_check_names_the_value_and_the_range() -> None:
    limits.check("n_ctx", 256)
    with pytest.raises(OptionError, match=r"`n_ctx` cannot be 255\. Use 256 to 262144\."):
        limits.check("n_ctx", 255)


@pytest.mark.parametrize("name", limits.RANGES)
def test_no_number_is_wide_enough_to_wrap(name: str) -> None:
    bits = 64 if name == "seed" else 32
    with pytest.raises(OptionError, match=name):
        limits.check(name, 2**bits + 256)
