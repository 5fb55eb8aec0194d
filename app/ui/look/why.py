"""Why an answer was as slow or as fast as it was: only what its figures show.

Every reason names what was measured. Where figures allow two, both are said; where they
allow none, nothing is: a false reason is worse than none.
"""

from __future__ import annotations

from typing import Final

from app.engine import Figures, RoundTotals, Unmeasured, steady
from app.ui.look import words

_LONG_WAIT: Final = 1_000.0
"""Milliseconds of waiting or reading from which on a person notices that nothing comes."""

_DEARER: Final = 1.4
"""How much longer than at load a plain step takes where that is told. Beside one busy program
two cores keep 0.77 of the plain rate (1.3), beside two 0.43 (2.3): `slipstream bench --busy 2`."""

_LONG_CONTEXT: Final = 8_192
"""Tokens from which on the context is named beside the machine where a step became dearer. Below
it is not the reason: a plain step of the demo pair took 7.8 ms at 8,015 tokens and 9.3 at 25, the
best tenth of three runs beside other work."""

_LOW: Final = 2.0
"""Tokens per step below which drafting does little: a step that drafts costs more than a plain
one, so that hardly a gain is left whatever the machine."""

_ENOUGH: Final = 20
"""Guesses that a share of them is told of: a tenth more or less is then two of them."""

# Shares of guesses that held, of the demo pair, whole blocks of 16, at least 22 rounds each: of
# the first ones, and of those after a right one. Its own questions 0.97 and 0.97; prompts in four
# other languages and code 0.73 and 0.95, drawn at a temperature of 1.0 0.25 and 0.92, 1.2 0.16 and
# 0.93, 1.5 0.12 and 0.81. So a healthy pair fails at turns of the text, and holds between them.
# With a drafter that was damaged both are low: a window of 16 tokens instead of 128 0.22 and 0.70,
# of 12 0.11 and 0.60, of 8 0.07 and 0.33; layers of the target in the wrong order 0.17 and 0.59;
# noise of half of each weight's spread 0.28 and 0.52, of 0.6 0.19 and 0.25. Hardly any guess held
# (under 0.7 % of all) with a window of 1, another base of its positions and noise of 0.7 and more.

_HOLDS: Final = 0.75
"""Between what a healthy pair keeps after a right guess and what a damaged one does."""

_HARDLY: Final = 0.01
"""Of all guesses: fewer held only with the worst of those drafters."""

_HOT: Final = 1.5
"""A temperature above which a healthy pair looks like those: at 2.0 it kept 0.5 % of all."""

_CLIFF_FIRST: Final = 0.5
_CLIFF_LATER: Final = 0.25
"""First guesses that hold with none after them: neither text nor coarse weights were seen to do
that, so it is what a block's later places are given."""


def reasons(figures: Figures) -> list[str]:
    """In sentences, what weighs most first."""
    told = [
        _waited(figures),
        _read(figures),
        _fell_back(figures),
        _dear(figures),
        _changed(figures),
        _uneven(figures),
        _undrafted(figures),
        acceptance(figures.totals, figures.context, figures.temperature),
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
    loaded, plain = figures.loaded_tokens_per_s, figures.speedup.plain_tokens_per_s
    if not loaded or not plain or loaded / plain < _DEARER:
        return ""
    what = f"A plain step took {loaded / plain:.1f} × as long as when the model was loaded"
    if figures.context < _LONG_CONTEXT:
        return f"The machine was busy. {what}."
    return (
        f"{what}: the machine was busy, or it is the context, which is long "
        f"({words.tokens(figures.context)})."
    )


def _changed(figures: Figures) -> str:
    pace = figures.pace
    if not pace or steady(pace):
        return ""
    if pace < 1:
        return (
            f"The machine became freer meanwhile: a step took {1 / pace:.1f} × as long at the "
            "beginning as later. So no speed-up is told."
        )
    grown = figures.context >= _LONG_CONTEXT
    cause = "The machine became busy" + (", or the context long," if grown else "")
    return (
        f"{cause} meanwhile: a step took {pace:.1f} × as long as at the beginning. "
        "So no speed-up is told."
    )


def _uneven(figures: Figures) -> str:
    if figures.speedup.why is not Unmeasured.UNEVEN:
        return ""
    return (
        "Something held up the plain steps beside it, as other programs do. So no speed-up is told."
    )


def _undrafted(figures: Figures) -> str:
    """Where no drafter is loaded, or none is to draft, that is no reason that was measured."""
    if figures.totals.drafted or not figures.paused:
        return ""
    return "Nothing was drafted: going by the rounds before, plain steps were quicker here."


def acceptance(totals: RoundTotals, context: int = 0, temperature: float | None = None) -> str:
    """Why few guesses held, by how many of the first ones did and of those after a right one."""
    drafted = totals.drafted_at[0] if totals.drafted_at else 0
    length = totals.mean_accepted_length
    if drafted < _ENOUGH or length is None or length >= _LOW:
        return ""
    first = totals.accepted_at[0] / drafted
    told = f"Few guesses held ({first:.0%} of the first ones)"
    if temperature is not None and temperature > _HOT:
        return f"{told}: at a temperature of {temperature:.1f} much of the text is chance."
    accepted, of = sum(totals.accepted_at), sum(totals.drafted_at)  # of the drafter's own
    if accepted < _HARDLY * of:
        return (
            "Hardly a guess held, at no place of the block: the drafter may be stored too "
            "coarsely, be given too little of the text, or not belong to this model."
        )
    after_right = sum(
        min(before, n)
        for before, n in zip(totals.accepted_at[:-1], totals.drafted_at[1:], strict=True)
    )
    if after_right < _ENOUGH:
        return f"{told}."
    later = sum(totals.accepted_at[1:]) / after_right
    if later >= _HOLDS:
        long = ", or with a context this long," if context >= _LONG_CONTEXT else ""
        return (
            f"{told}, but {later:.0%} of those after a right one: text in this language or of "
            f"this kind{long} is hard to guess where it takes a turn."
        )
    if first >= _CLIFF_FIRST and later <= _CLIFF_LATER:
        return (
            f"First guesses held ({first:.0%}), and none after them to speak of ({later:.0%}): "
            "that looks like a fault in what the drafter is given. Please report it."
        )
    return (
        f"{told}, and of those after a right one {later:.0%}: the drafter may be stored too "
        "coarsely, or be given too little of the text."
    )
