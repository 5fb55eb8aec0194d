"""Plain speed from plain steps of the last minute."""

from __future__ import annotations

from app.engine.plain import PlainSpeed


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_the_step_in_the_middle_counts() -> None:
    plain = PlainSpeed()
    for seconds in (0.02, 0.9, 0.02, 0.01, 0.02):  # something else ran beside one of them
        plain.add(100, seconds)
    assert plain.rate(100) == 1 / 0.02


def test_nothing_is_said_of_another_hour() -> None:
    clock = Clock()
    plain = PlainSpeed(clock)
    plain.add(100, 0.02)
    assert plain.rate(100) is None  # one step alone tells nothing
    plain.add(100, 0.02)
    clock.seconds = 59.0
    assert plain.rate(100) == 1 / 0.02
    clock.seconds = 61.0
    assert plain.rate(100) is None


def test_nothing_is_said_of_another_context() -> None:
    plain = PlainSpeed()
    for _ in range(3):
        plain.add(4000, 0.05)
    assert plain.rate(4800) == 1 / 0.05
    assert plain.rate(9000) is None
    assert plain.rate(100) is None
