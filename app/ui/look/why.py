"""Why an answer was as slow or as fast as it was: only what its figures show.

Every reason names what was measured. Where figures allow two, both are said; where they
allow none, nothing is: a false reason is worse than none.
"""

from __future__ import annotations

from typing import Final

from app.engine import Figures, RoundTotals, steady
from app.ui.look import words

_LONG_WAIT: Final = 1_000.0  # ms
_DEARER: Final = 1.4  # factor of a step's time over that at load from which on it is told
_LONG_CONTEXT: Final = 2_048  # tokens from which on a step is dearer for the context's sake
_LOW: Final = 2.0  # tokens per step below which drafting does little
_ENOUGH: Final = 20  # rounds that drafted, for the shape of acceptance to say anything


def reasons(figures: Figures) -> list[str]:
    """In sentences, what weighs most first."""
    told = [
        _waited(figures),
        _read(figures),
        _fell_back(figures),
        _dear(figures),
        _changed(figures),
        acceptance(figures.totals, figures.context),
    ]
    return [reason for reason in told if reason]


def _waited(figures: Figures) -> str:
    if figures.waited_ms < _LONG_WAIT:
        return ""
    return f"It waited {words.duration(figures.waited_ms)} for its turn: something else ran first."


def _read(figures: Figures) -> str:
    if figures.prefill_ms < max(_LONG_WAIT, figures.decode_ms / 2):
        return ""
    new = figures.prompt_tokens - figures.reused
    return (
        f"Much of the time went into reading the prompt: {words.tokens(new)} "
        f"in {words.duration(figures.prefill_ms)}."
    )


def _fell_back(figures: Figures) -> str:
    return f"It ran on the CPU and not on a GPU: {figures.fallback}" if figures.fallback else ""


def _dear(figures: Figures) -> str:
    """A plain step beside one at load, when nothing was in the context."""
    loaded, plain = figures.loaded_tokens_per_s, figures.plain_tokens_per_s
    if not loaded or not plain or loaded / plain < _DEARER:
        return ""
    what = f"A plain step took {loaded / plain:.1f} × as long as when the model was loaded"
    if figures.context < _LONG_CONTEXT:
        return f"The machine was busy. {what}."
    return (
        f"{what}: the context is long ({words.tokens(figures.context)}), "
        "or the machine was busy as well."
    )


def _changed(figures: Figures) -> str:
    pace = figures.pace
    if pace is None or steady(pace):
        return ""
    if pace < 1:
        return (
            f"The machine became freer meanwhile: a step took {1 / pace:.1f} × as long at the "
            "beginning as at the end. So no speed-up is told."
        )
    grown = figures.context >= _LONG_CONTEXT
    cause = "The context grew long, or the machine busy" if grown else "The machine became busy"
    return (
        f"{cause} meanwhile: a step took {pace:.1f} × as long at the end as at the beginning. "
        "So no speed-up is told."
    )


def acceptance(totals: RoundTotals, context: int = 0) -> str:
    """Why few guesses held, by how acceptance falls from place to place in the block."""
    if not totals.rounds:
        return ""
    if not totals.drafted:
        return "Nothing was drafted: going by the rounds before, plain steps were quicker here."
    drafted = totals.drafted_at[0] if totals.drafted_at else 0
    length = totals.mean_accepted_length
    if drafted < _ENOUGH or length is None or length >= _LOW:
        return ""
    first = totals.accepted_at[0]
    if totals.accepted < 0.01 * totals.drafted:
        return (
            "Hardly a guess held, at no place of the block: the drafter may be stored too "
            "coarsely, or not belong to this model."
        )
    # Of those whose guess before held, how many held.
    later = sum(totals.accepted_at[1:])
    could = sum(
        min(before, n)
        for before, n in zip(totals.accepted_at[:-1], totals.drafted_at[1:], strict=True)
    )
    if first < 0.35 * drafted and could >= _ENOUGH and later >= 0.75 * could:
        return (
            "The first guess of a block mostly failed while those after it held: that looks like "
            "a fault in what the drafter is given. Please report it."
        )
    long = ", or with a context this long," if context >= _LONG_CONTEXT else ""
    return (
        f"Few guesses held ({first / drafted:.0%} of the first ones, fewer at each place after "
        f"them): text in this language or of this kind{long} is hard to guess."
    )
