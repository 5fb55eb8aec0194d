"""What a number may be, written once for settings, options and the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.errors import OptionError


@dataclass(frozen=True, slots=True)
class Range:
    """From `least` to `most`; with `above` or `below` that end itself is out."""

    least: float
    most: float
    above: bool = False
    below: bool = False

    def holds(self, value: float) -> bool:
        """Whether `value` lies within; never for NaN."""
        over = value > self.least if self.above else value >= self.least
        under = value < self.most if self.below else value <= self.most
        return over and under

    def __str__(self) -> str:
        least = f"above {self.least}, up" if self.above else str(self.least)
        return f"{least} to {'below ' if self.below else ''}{self.most}"


RANGES: Final[dict[str, Range]] = {
    "temperature": Range(0, 5),
    "top_k": Range(0, 1_000_000),  # beyond any vocabulary
    "top_p": Range(0, 1, above=True),
    "min_p": Range(0, 1, below=True),
    "presence_penalty": Range(-2, 2),
    "frequency_penalty": Range(-2, 2),
    "repeat_penalty": Range(1e-4, 5),
    "penalty_last_n": Range(-1, 262_144),
    "logit_bias": Range(-100, 100),
    "token": Range(0, 2**31 - 1),
    "seed": Range(0, 2**64 - 1),
    "block": Range(1, 64),
    "max_tokens": Range(0, 262_144),
    "think_budget": Range(1, 262_144),
    "n_ctx": Range(256, 262_144),
    "n_ubatch": Range(8, 262_144),
    "threads": Range(1, 1024),
}
"""By the name of the parameter; lengths are in tokens."""


def check(name: str, value: float, called: str = "") -> None:
    """Raise `OptionError` unless `value` is one that `name` may have, `called` so where it is."""
    if not RANGES[name].holds(value):
        told = f"`{called or name}` cannot be {value!r}."
        raise OptionError(told, remedy=f"Use {RANGES[name]}.")
