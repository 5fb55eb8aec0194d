"""Whether an answer goes round in circles: a model that has begun to will not leave them.

The end of it is one stretch of tokens, told over and over without a difference. That is also
what an empty table, a matrix of zeros or a line that was asked for a hundred times look like,
so it takes many tokens of it, and more in an answer than in thinking, where nobody asks for
such things. Whatever counts, names or changes otherwise from one time to the next never repeats
itself in this sense, however long it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

TIMES: Final = 6
"""How often a stretch has to come, at least."""
TOKENS: Final = 2048
"""How many tokens that has to be at least, in an answer ..."""
THOUGHT: Final = 512
"""... and in thinking."""
LONGEST: Final = 1024
"""Tokens of a stretch that is looked for, at most."""

_EVERY: Final = 32  # tokens from one look to the next: one at what repeats takes milliseconds
_SIGN: Final = 16  # tokens that have come before wherever anything repeats


def repeats(tokens: Sequence[int], *, thinking: bool) -> bool:
    """Whether `tokens`, an answer as far as it has come, repeats itself at its end.

    Depends on the tokens alone, and not on how many came at once: drafted text ends where plain
    text does. A loop is seen at most 32 tokens after there is enough of it.
    """
    least = THOUGHT if thinking else TOKENS
    if len(tokens) % _EVERY or len(tokens) < least:
        return False
    back = tokens[: -max(least, TIMES * LONGEST) - 1 : -1]
    return _recurs(back) and any(
        period + same >= max(least, TIMES * period)
        for period, same in enumerate(_agreements(back)[1 : LONGEST + 1], start=1)
    )


def _recurs(back: Sequence[int]) -> bool:
    """Whether the last tokens have come before: hardly ever so in text that does not repeat."""
    sign = back[:_SIGN]
    places = range(1, min(LONGEST, len(back) - _SIGN) + 1)
    return any(back[at] == sign[0] and back[at : at + _SIGN] == sign for at in places)


def _agreements(text: Sequence[int]) -> list[int]:
    """For each place, how many tokens from there on are those from the beginning on.

    The Z-function (Gusfield, Algorithms on Strings, Trees and Sequences, 1.4), in linear time.
    """
    n = len(text)
    found = [n] + [0] * (n - 1)
    left = right = 0  # the stretch known to agree with the beginning that ends last
    for at in range(1, n):
        same = min(right - at, found[at - left]) if at < right else 0
        while at + same < n and text[same] == text[at + same]:
            same += 1
        found[at] = same
        if at + same > right:
            left, right = at, at + same
    return found
