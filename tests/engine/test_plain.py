"""Plain speed from plain steps of the last minute."""

from __future__ import annotations

import pytest

from app.engine.plain import Plain, PlainSpeed


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_the_step_in_the_middle_counts() -> None:
    plain = PlainSpeed()
    for seconds in (0.02, 0.9, 0.02, 0.01, 0.02):  # something else ran beside one of them
        plain.add(100, seconds)
    assert plain.at(100) == Plain(1 / 0.02)


@pytest.mark.parametrize(
    ("steps", "uneven"),
    [
        ([0.01, 0.014], False),
        ([0.01, 0.016], True),
        ([0.01] * 9 + [0.1, 0.2, 0.3], False),  # some were held up
        ([0.01] * 9 + [0.1] * 4, True),  # so many that others may have been too
        ([0.1, 0.11, 0.12, 0.13, 0.14, 0.15], False),  # slow, but all alike
    ],
)
def test_steps_of_unlike_times_are_no_measure(steps: list[float], uneven: bool) -> None:
    assert Plain.of(steps).uneven is uneven


@pytest.mark.parametrize("steps", [[], [0.01], [0.0, 0.0], [0.0, 0.01]])
def test_few_steps_and_steps_without_time_give_no_rate(steps: list[float]) -> None:
    assert Plain.of(steps) == Plain(None, False)


def test_nothing_is_said_of_another_hour() -> None:
    clock = Clock()
    plain = PlainSpeed(clock)
    plain.add(100, 0.02)
    assert plain.at(100) == Plain()  # one step alone tells nothing
    plain.add(100, 0.02)
    clock.seconds = 59.0
    assert plain.at(100) == Plain(1 / 0.02)
    clock.seconds = 61.0
    assert plain.at(100) == Plain()


def test_nothing_is_said_of_another_context() -> None:
    plain = PlainSpeed()
    for _ in range(3):
        plain.add(4000, 0.05)
    assert plain.at(4800) == Plain(1 / 0.05)
    assert plain.at(9000) == Plain()
    assert plain.at(100) == Plain()
