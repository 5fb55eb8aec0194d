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

ROWS: Final = 16
"""Positions verified in a round where there is no drafter to say: the native library's too."""

LEAST: Final = 8
"""Tokens that must have stood together before. Shorter stretches come again by chance."""

_LONGEST: Final = 128  # as far back as a match is measured
_CANDIDATES: Final = 16  # earlier places that are compared, the latest first

_AGAIN: Final = 3  # tokens by which a text is known again near where a copy of it went astray
_ASTRAY: Final = 16  # tokens that such a difference has at most, here or there

_WORTH: Final = 3  # drafted tokens that one that holds pays for, on the slowest devices
_SAVED: Final = 48  # what is gained counts for as many drafted tokens that fail later


@dataclass(frozen=True, slots=True)
class Match:
    """`length` tokens at the end of the text stood before; `tokens` came behind them then, from
    `place` on."""

    length: int
    place: int
    tokens: tuple[int, ...]


class Lookup:
    """The tokens of a chat, so far, and where each stretch of `LEAST` of them ends."""

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        self._tokens: list[int] = []
        self._last: dict[tuple[int, ...], int] = {}  # the last place behind a stretch
        self._before: list[int] = []  # behind each place, the one before of the same stretch, or 0
        self.begin(tokens)

    def begin(self, tokens: Iterable[int]) -> None:
        """Another text, of which what is as it was is known already."""
        wanted = tokens if isinstance(tokens, list) else list(tokens)
        pairs = enumerate(zip(self._tokens, wanted, strict=False))
        held = min(len(self._tokens), len(wanted))
        if self._tokens[:held] != wanted[:held]:
            held = next(i for i, (old, new) in pairs if old != new)
        self._cut(held)
        self._needed = LEAST
        self._gained = 0
        self._astray = 0  # where the source of a copy went another way; 0: nowhere
        self._since = 0  # tokens that there were then
        self.extend(wanted[held:])

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
        of how far it will. Behind a word that is changed in a copy, a few tokens are enough to
        go on. None where there is no match.
        """
        text = self._tokens
        length = place = 0
        for end in islice(self._places(), _CANDIDATES if most > 0 else 0):
            if length and (end <= length or text[end - length - 1] != text[-length - 1]):
                continue  # no longer than that one
            n = LEAST
            while n < min(end, _LONGEST) and text[end - n - 1] == text[-n - 1]:
                n += 1
            if n > length:
                length, place = n, end
            if n == _LONGEST:
                break
        if not length and (place := self._again()):
            length = LEAST
        n = min(most, length)
        if n < 1:
            return None
        behind = text[place : place + n]
        period = len(text) - place  # where it repeats itself, it goes on doing so
        while len(behind) < n:
            behind.append(behind[-period])
        return Match(length, place, tuple(behind))

    def trusts(self, match: Match) -> bool:
        """Whether a match is long enough, by what came of those before."""
        return match.length >= self._needed

    def record(self, match: Match, accepted: int, drafted: int) -> None:
        """What came of a draft, before its tokens are added.

        Where drafts fail more than others paid for, the next needs twice the length: a text of
        many like beginnings costs a few rounds and no more.
        """
        if accepted < drafted:
            self._astray, self._since = match.place + accepted, len(self._tokens) + accepted
        self._gained = min(self._gained + _WORTH * accepted - drafted, _SAVED)
        if self._gained < 0:
            self._gained = 0
            self._needed = min(2 * max(self._needed, drafted), 2 * _LONGEST)
        elif accepted:
            self._needed = max(LEAST, self._needed // 2)

    def _cut(self, length: int) -> None:
        while len(self._tokens) > length:
            before = self._before.pop()
            stretch = tuple(self._tokens[-LEAST:])
            self._tokens.pop()
            if before:
                self._last[stretch] = before
            else:
                self._last.pop(stretch, None)

    def _places(self) -> Iterable[int]:
        """Where the last stretch ended before, the latest first."""
        end = self._before[-1] if self._before else 0
        while end:
            yield end
            end = self._before[end - 1]

    def _again(self) -> int:
        """Where the source of a copy goes on behind a difference; 0: nowhere to be seen."""
        text, new = self._tokens, len(self._tokens) - self._since
        if not self._astray or not _AGAIN <= new <= _ASTRAY:
            return 0
        ends = range(self._astray + _AGAIN, min(self._astray + _ASTRAY, self._since) + 1)
        # first as if a word stood for a word
        for end in sorted(ends, key=lambda end: abs(end - self._astray - new)):
            if text[end - _AGAIN : end] == text[-_AGAIN:]:
                return end
        return 0
