"""Drafts out of the text itself: where its last tokens stood before, and what came then.

What is quoted, corrected or listed repeats its source word for word, and the source stands in
the prompt or in the answer. Such a draft costs nothing to make, and the target verifies it
like any other. The idea: Saxena, "Prompt Lookup Decoding", 2023.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

LEAST: Final = 8
"""Tokens that must have stood together before. Shorter stretches come again by chance."""

_LONGEST: Final = 128  # as far back as a match is measured
_CANDIDATES: Final = 16  # earlier places that are compared, the latest first


@dataclass(frozen=True, slots=True)
class Match:
    """`length` tokens at the end of the text stood before; `tokens` came behind them then."""

    length: int
    tokens: tuple[int, ...]


class Lookup:
    """The tokens of a chat, so far, and where each stretch of `LEAST` of them ends."""

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        self._tokens: list[int] = []
        self._last: dict[tuple[int, ...], int] = {}  # the last place behind a stretch
        self._before: list[int] = []  # behind each place, the one before of the same stretch, or 0
        self._needed = LEAST
        self.extend(tokens)

    def extend(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            self._tokens.append(token)
            end = len(self._tokens)
            before = 0
            if end >= LEAST:
                stretch = tuple(self._tokens[end - LEAST :])
                before = self._last.get(stretch, 0)
                self._last[stretch] = end
            self._before.append(before)

    def find(self, most: int) -> Match | None:
        """The longest match, the latest of equals, with at most `most` tokens behind it.

        They are no more than the match is long: what is known to repeat so far is the measure
        of how far it will. None where there is no match.
        """
        text = self._tokens
        best = place = 0
        for end in islice(self._places(), _CANDIDATES):
            length = LEAST
            while length < min(end, _LONGEST) and text[end - length - 1] == text[-length - 1]:
                length += 1
            if length > best:
                best, place = length, end
        n = min(most, best)
        if n < 1:
            return None
        behind = text[place : place + n]
        period = len(text) - place  # where it repeats itself, it goes on doing so
        while len(behind) < n:
            behind.append(behind[-period])
        return Match(best, tuple(behind))

    def trusts(self, match: Match) -> bool:
        """Whether a match is long enough, by what came of those before."""
        return match.length >= self._needed

    def record(self, drafted: int, accepted: int) -> None:
        """What came of a draft. One that mostly failed makes the next need twice the length, so
        that a text of many like beginnings costs a few rounds and no more."""
        if 2 * accepted < drafted:
            self._needed = min(2 * max(self._needed, drafted), 2 * _LONGEST)
        else:
            self._needed = max(LEAST, self._needed // 2)

    def _places(self) -> Iterable[int]:
        """Where the last stretch ended before, the latest first."""
        end = self._before[-1] if self._before else 0
        while end:
            yield end
            end = self._before[end - 1]
