"""Drafts out of the text itself: where its last tokens stood before, and what came then.

What is quoted, corrected or listed repeats its source word for word, and the source stands in
the prompt or in the answer. Such a draft costs nothing to make, and the target verifies it
like any other. The idea: Saxena, "Prompt Lookup Decoding", 2023. Where too few tokens stood
together before, the drafter is asked: where it begins as the text went on, that is a copy too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

ROWS: Final = 16
"""Positions verified in a round where there is no drafter to say: the native library's too."""

LEAST: Final = 8
"""Tokens that must have stood together before. Shorter stretches come again by chance."""

SHORT: Final = 4
"""The same where the drafter agrees with what came then."""

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


@dataclass(slots=True)
class _Stretches:
    """Where each stretch of `length` tokens of a text ends."""

    length: int
    last: dict[tuple[int, ...], int] = field(default_factory=dict)  # the last place behind one
    before: list[int] = field(default_factory=list)  # behind each place, the one before, or 0

    def add(self, tokens: list[int]) -> None:
        """The last of them is new."""
        end = len(tokens)
        before = 0
        if end >= self.length:
            stretch = tuple(tokens[end - self.length :])
            before = self.last.get(stretch, 0)
            self.last[stretch] = end
        self.before.append(before)

    def cut(self, tokens: list[int]) -> None:
        """The last of them goes."""
        stretch = tuple(tokens[-self.length :])
        if before := self.before.pop():
            self.last[stretch] = before
        else:
            self.last.pop(stretch, None)

    def places(self) -> Iterator[int]:
        """Where the last stretch ended before, the latest first."""
        end = self.before[-1] if self.before else 0
        while end:
            yield end
            end = self.before[end - 1]


class Lookup:
    """The tokens of a chat, so far, and what stood in it before."""

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        self._tokens: list[int] = []
        self._long, self._short = _Stretches(LEAST), _Stretches(SHORT)
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
        self._hints = True
        self._gained = 0
        self._astray = 0  # where the source of a copy went another way; 0: nowhere
        self._since = 0  # tokens that there were then
        self.extend(wanted[held:])

    def extend(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            self._tokens.append(token)
            self._long.add(self._tokens)
            self._short.add(self._tokens)

    def find(self, most: int) -> Match | None:
        """The longest match, the latest of equals, with at most `most` tokens behind it.

        They are no more than the match is long: what is known to repeat so far is the measure
        of how far it will. Behind a word that is changed in a copy, a few tokens are enough to
        go on. None where there is no match.
        """
        text = self._tokens
        length = place = 0
        for end in islice(self._long.places(), _CANDIDATES if most > 0 else 0):
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
        return Match(length, place, self._behind(place, n)) if n > 0 else None

    def hint(self, most: int, match: Match | None = None) -> tuple[int, ...]:
        """`most` tokens that may come where a drafter agrees with the first of them: behind a
        match that is not trusted, or the latest shorter one. None where there is no such."""
        place = match.place if match else next(self._short.places(), 0)
        return self._behind(place, most) if place and self._hints else ()

    def record_hint(self, held: bool) -> None:
        """Whether what the drafter did not say came. If not, its agreement is worth no more,
        until a copy holds."""
        self._hints = held

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
        self._hints |= accepted == drafted

    def _cut(self, length: int) -> None:
        while len(self._tokens) > length:
            self._long.cut(self._tokens)
            self._short.cut(self._tokens)
            self._tokens.pop()

    def _behind(self, place: int, n: int) -> tuple[int, ...]:
        """The `n` tokens behind a place; where it repeats itself, it goes on doing so."""
        behind = self._tokens[place : place + n]
        period = len(self._tokens) - place
        while len(behind) < n:
            behind.append(behind[-period])
        return tuple(behind)

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
