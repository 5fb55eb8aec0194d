"""What drafting does for the answer on view, in one sentence for a person who never heard of it."""

from __future__ import annotations

from typing import NamedTuple

from app.engine import Plain, Speedup, Unmeasured
from app.ui.look import words
from app.ui.look.language import tr
from app.ui.meters.model import EVEN, Meters


class Verdict(NamedTuple):
    """The sentence, cut where its figure ends; no figure where none was measured."""

    figure: str
    words: str

    def __str__(self) -> str:
        return f"{self.figure} {self.words}".strip()


def verdict(meters: Meters) -> Verdict:
    """Never a ratio that was not measured, never one of plain decoding against itself."""
    if undrafted := _why_not(meters):
        return Verdict("", undrafted)
    found = meters.speedup
    gain, why = found.times, found.why
    if why is Unmeasured.PACE:
        return Verdict(
            "", tr("Drafting. The machine's pace changed meanwhile, so no speed-up is told.")
        )
    if why is Unmeasured.UNEVEN:
        return Verdict("", tr("Drafting. How much faster cannot be measured on a busy machine."))
    if gain is None and meters.counters.over:
        return Verdict("", tr("Drafting. How much faster was not measured."))
    if gain is None:
        return Verdict("", tr("Drafting. How much faster is not measured yet."))
    if gain > 1 + EVEN:
        return Verdict(f"{gain:.1f} ×", tr("faster than without drafting."))
    if gain >= 1 - EVEN:
        return Verdict("", tr("As fast as without drafting."))
    return Verdict("", tr("Drafting costs more here than it saves, for now."))


def _why_not(meters: Meters) -> str:
    """Why nothing is drafted; nothing where something is."""
    model, counters = meters.model, meters.counters
    if counters.kept is None:
        if model is None:
            return tr("No model is loaded.")
        if not model.has_draft and not counters.totals.drafted:
            return tr("No drafter is loaded: one token at a time.")
    if not counters.totals.rounds:
        if counters.reading:
            return tr("Reading the prompt. Drafting begins with the answer.")
        return tr("Ask something: what drafting does for the answer is shown here.")
    if meters.paused:
        return tr("Drafting paused: not worth it for this text.")
    return "" if counters.totals.drafted else tr("Nothing was drafted for this answer.")


def spread(meters: Meters) -> str:
    """Between what the speed-up lay over the last rounds, leaving out a tenth at each end."""
    found, counters = meters.speedup, meters.counters
    if found.times is None:
        return ""
    plain = Plain(found.plain_tokens_per_s)
    points = zip(counters.rates, counters.lengths, strict=True)
    measured = (Speedup.between(rate, plain, length).times for rate, length in points)
    gains = sorted(gain for gain in measured if gain is not None)
    if len(gains) < 10:
        return ""
    tenth = len(gains) // 10
    low, high = (words.times(gains[at]) for at in (tenth, -1 - tenth))
    return (
        "" if low == high else tr("{low} to {high} over the last steps").format(low=low, high=high)
    )
